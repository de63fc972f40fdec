//! Computes the size of a YAML document after its aliases are expanded, and of what is held for its aliases.

use serde_saphyr::granit_parser::{Event, Parser};
use std::collections::HashMap;

/// Whether the aliases of a document expand to at most `bytes_max` bytes of text, and its anchors hold at most as
/// many bytes and `nodes_max` values. The library limits the number of repeated nodes only, and a node may be a long
/// text; it copies all that is in an anchor, once more for each anchor around it.
pub(super) fn fits(text: &str, bytes_max: usize, nodes_max: usize) -> bool {
    if !text.contains(['&', '*']) {
        return true;
    }
    let mut sizes = Sizes::default();
    // A syntax error is reported when the document is read.
    for (event, _) in Parser::new_from_str(text).map_while(Result::ok) {
        sizes.see(&event);
    }
    sizes.total <= bytes_max && sizes.held_bytes <= bytes_max && sizes.held_nodes <= nodes_max
}

#[derive(Default)]
struct Sizes {
    total: usize,
    /// What is held for anchors of lists and maps.
    held_bytes: usize,
    held_nodes: usize,
    /// The size of each anchor.
    anchors: HashMap<usize, usize>,
    /// Open lists and maps: the anchor, and the total before them.
    open: Vec<(usize, usize)>,
    /// Open lists and maps with an anchor.
    open_anchors: usize,
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
            self.open_anchors += usize::from(*anchor > 0);
            self.add(0);
        } else if let Event::SequenceEnd | Event::MappingEnd = event
            && let Some((anchor, before)) = self.open.pop()
        {
            self.open_anchors -= usize::from(anchor > 0);
            self.anchors.insert(anchor, self.total.saturating_sub(before));
        }
    }

    /// Adds a node with this many bytes of text.
    fn add(&mut self, bytes: usize) {
        self.total = self.total.saturating_add(bytes);
        self.held_nodes = self.held_nodes.saturating_add(self.open_anchors);
        self.held_bytes = self.held_bytes.saturating_add(bytes.saturating_mul(self.open_anchors));
    }
}
