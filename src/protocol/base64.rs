//! Base64 as encoders write it.

use data_encoding::{BASE64_NOPAD, Encoding, Translate};
use std::sync::LazyLock;

/// Decodes the output of any encoder, without its padding: of both alphabets, and with any last bits.
pub(crate) static LENIENT_BASE64: LazyLock<Encoding> = LazyLock::new(|| {
    let mut specification = BASE64_NOPAD.specification();
    specification.check_trailing_bits = false;
    specification.translate = Translate { from: "-_".to_owned(), to: "+/".to_owned() };
    specification.encoding().unwrap_or(BASE64_NOPAD)
});
