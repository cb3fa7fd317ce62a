//! Defects of this program: a panic is one, and says where it was, never about what.
//!
//! What a panic says may quote the text that it failed on, and that can hold a secret. So only the line of our source
//! is told, which is what whoever mends it needs.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};

thread_local! {
    /// How many [`guard`]s this thread is in.
    static GUARDS: Cell<usize> = const { Cell::new(0) };
    /// Where the panic was that is on its way to a guard.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Where this program failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect(String);

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a defect of this program, at {}; please report it",
            self.0
        )
    }
}

impl std::error::Error for Defect {}

/// Lets panics say where they were, and nothing else, from here on. Once, before anything else.
pub fn tell_only_places() {
    set_hook(Box::new(hook));
}

fn hook(info: &PanicHookInfo<'_>) {
    let place = info
        .location()
        .map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    if GUARDS.get() > 0 {
        PLACE.set(Some(place));
    } else {
        // Nobody is left to tell it to if this fails.
        let _ = writeln!(std::io::stderr(), "update: {}", Defect(place));
    }
}

/// Does `work`, whose panic becomes an error, so that what is done for others goes on. What `work` changes must not
/// be used after a panic.
///
/// # Errors
/// When it panicked.
pub fn guard<T>(work: impl FnOnce() -> T) -> Result<T, Defect> {
    GUARDS.set(GUARDS.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDS.set(GUARDS.get() - 1);
    done.map_err(|_| {
        Defect(
            PLACE
                .take()
                .unwrap_or_else(|| "an unknown place".to_owned()),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_tells_its_line_and_not_its_words() {
        tell_only_places();
        let line = line!() + 1;
        let defect = guard(|| panic!("the text is sk-very-secret")).unwrap_err();
        let said = defect.to_string();
        assert!(said.contains(&format!("src/defect.rs:{line}:")), "{said}");
        assert!(!said.contains("secret"), "{said}");
        assert_eq!(guard(|| guard(|| 7)), Ok(Ok(7)));
        assert_eq!(GUARDS.get(), 0);
    }
}
