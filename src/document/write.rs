//! Replaces files of homes, atomically.
