//! Brings every profile home of an application to the configuration version that its installed
//! code expects, restarts every runtime that still serves the old state, and proves it.
//!
//! The map, from the bottom up; a file uses what stands above it in its group, and the groups before:
//!
//! | group | modules | what it is |
//! |---|---|---|
//! | base | [`error`] [`defect`] [`digest`] [`world`] [`screen`] [`helper`] [`ui`] [`app`] [`config`] | errors, surroundings, secrets, acting as somebody else, output, descriptors |
//! | document | [`document`] | parse, edit in place, prove, replace atomically |
//! | fleet | [`fleet`] | what exists: homes, installs, runtimes |
//! | migrate | [`migrate`] | what has to change in a home |
//! | restart | [`restart`] | the mechanism table and its executors |
//! | state | [`state`] | lock, receipts, snapshots |
//! | decide | [`plan`] [`verify`] [`receipt`] | values in, values out |
//! | top | [`cli`] [`run`] | the command line and its subcommands |

pub mod error;
pub mod defect;
pub mod digest;
pub mod world;
pub mod screen;
pub mod helper;
pub mod ui;
pub mod app;
pub mod config;
pub mod document;
pub mod fleet;
pub mod migrate;
pub mod restart;
pub mod state;
pub mod plan;
pub mod verify;
pub mod receipt;
pub mod cli;
pub mod run;
