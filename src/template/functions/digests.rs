//! Digests of text, as hexadecimal digits: <https://masterminds.github.io/sprig/crypto.html>.

use super::{Function, FunctionCall, function};
use crate::template::value::Value;
use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512, digest};

pub(super) const FUNCTIONS: &[Function] = &[
    function("sha1sum", (1, 1), |call| hex(call, &SHA1_FOR_LEGACY_USE_ONLY)),
    function("sha256sum", (1, 1), |call| hex(call, &SHA256)),
    function("sha512sum", (1, 1), |call| hex(call, &SHA512)),
    // In decimal digits, as in sprig.
    function("adler32sum", (1, 1), |call| Ok(Value::text(adler32(call.text(0)?).to_string()))),
];

fn hex(call: &FunctionCall<'_>, algorithm: &'static Algorithm) -> Result<Value, String> {
    let digest = digest(algorithm, call.text(0)?.as_bytes());
    Ok(Value::text(digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}

/// RFC 1950, section 9.
fn adler32(text: &str) -> u32 {
    const BASE: u32 = 65521;
    let (low, high) = text.bytes().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(byte)) % BASE;
        (low, (high + low) % BASE)
    });
    high << 16 | low
}
