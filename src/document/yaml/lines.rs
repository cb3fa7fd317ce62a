//! Lines of a text: where they begin and end, which number they have, how they end.

/// A text with the places of its line ends.
#[derive(Debug)]
pub(super) struct Lines<'t> {
    text: &'t str,
    above: usize,
}

impl<'t> Lines<'t> {
    /// The lines of `text`, which stands below `above` other ones.
    pub(super) const fn new(text: &'t str, above: usize) -> Self {
        Self { text, above }
    }

    /// How many lines stand above the text.
    pub(super) const fn above(&self) -> usize {
        self.above
    }

    /// The number of the line that holds `at`, from 1.
    pub(super) fn number(&self, at: usize) -> usize {
        let at = at.min(self.text.len());
        1 + self.above
            + self.text.as_bytes()[..at]
                .iter()
                .filter(|b| **b == b'\n')
                .count()
    }

    /// Where the line that holds `at` begins.
    pub(super) fn start(&self, at: usize) -> usize {
        self.text.as_bytes()[..at]
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |end| end + 1)
    }

    /// Where the text of the line that holds `at` ends, before its line end.
    pub(super) fn end(&self, at: usize) -> usize {
        let end = self.feed(at);
        let bytes = self.text.as_bytes();
        if end > at && bytes.get(end) == Some(&b'\n') && bytes[end - 1] == b'\r' {
            end - 1
        } else {
            end
        }
    }

    /// Where the next line begins, or the end of the text.
    pub(super) fn next(&self, at: usize) -> usize {
        (self.feed(at) + 1).min(self.text.len())
    }

    /// Where the line feed of the line that holds `at` stands, or the end of the text.
    fn feed(&self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        bytes[at..]
            .iter()
            .position(|b| *b == b'\n')
            .map_or(bytes.len(), |feed| at + feed)
    }

    /// The column of `at`, in bytes.
    pub(super) fn column(&self, at: usize) -> usize {
        at - self.start(at)
    }

    /// How the line that holds `at` ends; nothing on the last line of a text without a final one.
    pub(super) fn ending(&self, at: usize) -> Option<&'static str> {
        let feed = self.feed(at);
        if feed == self.text.len() {
            None
        } else if feed > 0 && self.text.as_bytes()[feed - 1] == b'\r' {
            Some("\r\n")
        } else {
            Some("\n")
        }
    }
}
