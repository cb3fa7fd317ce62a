//! tmp
use super::Session;
use crate::error::Result;
/// tmp
pub const PUT_BACK: &str = "put back";
/// tmp
pub fn run(_session: &Session, _run: &str) -> Result<u8> {
    Ok(0)
}
