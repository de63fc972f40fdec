//! How large a YAML document is once its aliases are followed.

use serde_saphyr::granit_parser::{Event, Parser};
use std::collections::HashMap;

/// Bytes of text in the document once its aliases are followed. The library counts what aliases
/// repeat in nodes only, and a node may be a long text.
pub(super) fn bytes(text: &str) -> usize {
    let mut sizes = Sizes::default();
    // A fault shows again, and is told, when the document is read.
    for (event, _) in Parser::new_from_str(text).map_while(Result::ok) {
        sizes.see(&event);
    }
    sizes.total
}

#[derive(Default)]
struct Sizes {
    total: usize,
    /// What each anchor stands for.
    anchors: HashMap<usize, usize>,
    /// The lists and maps that are open: the anchor, and the total before them.
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
