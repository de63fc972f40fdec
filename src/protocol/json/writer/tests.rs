//! What is written is what serde_json writes, byte for byte.

use super::write;
use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[track_caller]
fn check<T: Serialize>(value: &T) {
    let mut written = b"before".to_vec();
    let result = write(value, &mut written);
    match serde_json::to_string(value) {
        Ok(expected) => {
            result.expect(&expected);
            assert_eq!(String::from_utf8_lossy(&written), format!("before{expected}"));
        }
        Err(error) => assert_eq!(result.expect_err("an error").to_string(), error.to_string()),
    }
}

/// Everything that serde knows.
#[derive(Serialize)]
struct All<'a> {
    integers: (i8, i16, i32, i64, i128, u8, u16, u32, u64, u128),
    floats: [f64; 6],
    single: [f32; 3],
    flags: Vec<bool>,
    character: char,
    text: &'a str,
    bytes: Bytes,
    options: [Option<u8>; 2],
    nothing: (),
    empty: Empty,
    pair: Pair,
    wrapped: Wrapped<'a>,
    variants: Vec<Variant<'a>>,
    #[serde(flatten)]
    more: BTreeMap<&'a str, u8>,
}

struct Bytes;

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&[0, 7, 255])
    }
}

#[derive(Serialize)]
struct Empty;

#[derive(Serialize)]
struct Pair(u8, &'static str);

#[derive(Serialize)]
struct Wrapped<'a>(&'a str);

#[derive(Serialize)]
enum Variant<'a> {
    Unit,
    Newtype(&'a str),
    Tuple(u8, u8),
    Struct { a: u8, b: Option<u8> },
    None {},
}

#[test]
fn every_kind_of_value_is_written_like_serde_json_does() {
    let variants = vec![
        Variant::Unit,
        Variant::Newtype("a\"b"),
        Variant::Tuple(1, 2),
        Variant::Struct { a: 1, b: None },
        Variant::None {},
    ];
    check(&All {
        integers: (-1, -2, i32::MIN, i64::MIN, i128::MIN, 1, 2, u32::MAX, u64::MAX, u128::MAX),
        floats: [0.0, -0.0, 1.5, 1e300, f64::NAN, f64::INFINITY],
        single: [0.1, 1e30, f32::NAN],
        flags: vec![true, false],
        character: '\u{1F600}',
        text: "Grüße\u{2028}\u{0}\u{1f}\u{7f}\u{85}",
        bytes: Bytes,
        options: [None, Some(3)],
        nothing: (),
        empty: Empty,
        pair: Pair(1, "two"),
        wrapped: Wrapped("\\"),
        variants,
        more: BTreeMap::from([("x", 1), ("y", 2)]),
    });
    check(&Vec::<u8>::new());
    check(&BTreeMap::<String, u8>::new());
}

#[test]
fn a_key_is_a_string() {
    check(&BTreeMap::from([("a\nb", 1)]));
    check(&BTreeMap::from([('c', 1)]));
    check(&BTreeMap::from([(-7, 1), (8, 2)]));
    check(&BTreeMap::from([(true, 1), (false, 2)]));
    check(&BTreeMap::from([(vec![1], 1)]));
}

/// One byte that needs an escape, at every place of texts around the number of bytes that are looked
/// at together.
#[test]
fn an_escape_is_found_at_every_place() {
    for length in 0..50 {
        check(&"é".repeat(length));
        for (at, byte) in (0..length).flat_map(|at| (0..=0x7F).map(move |byte| (at, byte))) {
            let mut text = vec![b'x'; length];
            text[at] = byte;
            check(&String::from_utf8(text).expect("ASCII"));
        }
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..8)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_written_like_serde_json_does(value in values()) {
        check(&value);
    }
}
