//! What fuzz targets need of the framer.

use super::framer::{Framer, RawLine};
use crate::support::cuts::cuts;

/// The lines of `input`, which may have `bytes_max` bytes; checks that they do not depend on how the bytes
/// arrive.
pub(crate) fn lines(input: &[u8], bytes_max: usize) -> Vec<RawLine> {
    let [whole, others @ ..] = cuts(input).map(|pieces| split(&pieces, bytes_max));
    for other in others {
        assert_eq!(other, whole);
    }
    whole
}

pub(crate) fn split(pieces: &[&[u8]], bytes_max: usize) -> Vec<RawLine> {
    let mut framer = Framer::new(bytes_max);
    let mut lines = Vec::new();
    pieces.iter().for_each(|piece| framer.push(piece, &mut lines));
    lines.extend(framer.finish());
    lines
}
