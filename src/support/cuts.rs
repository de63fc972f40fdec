//! Ways to cut input into pieces, for checks that the result of a reader does not depend on them.

/// Longest of the pieces of different lengths, in bytes.
const PIECE_BYTES_MAX: usize = 23;

/// `bytes` whole, byte by byte, and in pieces of different lengths.
pub(crate) fn cuts(bytes: &[u8]) -> [Vec<&[u8]>; 3] {
    let mut lengths = lengths(bytes);
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(lengths.next().unwrap_or(1).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    [vec![bytes], bytes.chunks(1).collect(), pieces]
}

/// `text` whole, character by character, and in pieces of different lengths.
pub(crate) fn text_cuts(text: &str) -> [Vec<&str>; 3] {
    let mut lengths = lengths(text.as_bytes());
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let length = lengths.next().unwrap_or(1).min(rest.len());
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(length));
        pieces.push(piece);
        rest = after;
    }
    let ends = text.char_indices().map(|(at, char)| &text[at..at + char.len_utf8()]);
    [vec![text], ends.collect(), pieces]
}

/// Lengths of pieces, which `bytes` alone decide: a linear congruential generator (Knuth's MMIX).
fn lengths(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let seed = bytes.iter().fold(0_u64, |seed, byte| next(seed ^ u64::from(*byte)));
    let states = std::iter::successors(Some(seed), |state| Some(next(*state)));
    states.map(|state| 1 + (state >> 33) as usize % PIECE_BYTES_MAX)
}

fn next(state: u64) -> u64 {
    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}
