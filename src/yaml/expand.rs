//! Computes the size of a YAML document after its aliases are expanded.

use serde_saphyr::granit_parser::{Event, Parser};
use std::collections::HashMap;

/// Bytes of text in the document after its aliases are expanded. The library limits the number of
/// repeated nodes only, and a node may be a long text.
pub(super) fn bytes(text: &str) -> usize {
    let mut sizes = Sizes::default();
    // A syntax error is reported when the document is read.
    for (event, _) in Parser::new_from_str(text).map_while(Result::ok) {
        sizes.see(&event);
    }
    sizes.total
}

#[derive(Default)]
struct Sizes {
    total: usize,
    /// The size of each anchor.
    anchors: HashMap<usize, usize>,
    /// Open lists and maps: the anchor, and the total before them.
    open: Vec<(usize, usize)>,
}

impl Sizes {
    fn see(&mut self, event: &Event) {
        if let Event::Scalar(value, _, anchor, _) = event {
            self.anchors.insert(*anchor, value.len());
            self.add(value.len());
        } else if let Event::Alias(anchor) = event {
            self.add(self.anchors.get(anchor).copied().unwrap_or(0));
        } else if let Event::SequenceStart(_, anchor, _) | Event::MappingStart(_, anchor, _) = event
        {
            self.open.push((*anchor, self.total));
        } else if let Event::SequenceEnd | Event::MappingEnd = event
            && let Some((anchor, before)) = self.open.pop()
        {
            self.anchors.insert(anchor, self.total.saturating_sub(before));
        }
    }

    fn add(&mut self, bytes: usize) {
        self.total = self.total.saturating_add(bytes);
    }
}
