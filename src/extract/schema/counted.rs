//! A value wrapped for the validator so that its accesses are counted.
//!
//! The cost of a schema depends on the value: a few hundred bytes of schema can require too many
//! accesses to a few hundred bytes of value, while a schema with fifty types needs few. So the cost
//! is not estimated but counted, and when the limit is reached, the rest of the value reads as
//! `null`, which ends the validation.

use crate::extract::LINE_BYTES_MAX;
use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object};
use serde_json::{Map, Number, Value, map};
use std::borrow::Cow;
use std::cell::Cell;
use std::slice;

/// Accesses allowed for every value; they take some tens of milliseconds.
const LOOKS_MIN: usize = 2_000_000;

/// Additional accesses for each byte of a value.
const LOOKS_PER_BYTE: usize = 8;

/// Bytes of a string that count as one access.
const BYTES_PER_LOOK: usize = 16;

/// The remaining accesses.
#[derive(Debug)]
pub(super) struct Looks(Cell<usize>);

impl Looks {
    /// This many.
    pub(super) fn new(looks: usize) -> Self {
        Self(Cell::new(looks))
    }

    /// The accesses allowed for a value of this many bytes.
    pub(super) fn of(bytes: usize) -> Self {
        Self::new(LOOKS_MIN + LOOKS_PER_BYTE * bytes.min(LINE_BYTES_MAX))
    }

    /// Whether none are left, which makes the validator's result meaningless.
    pub(super) fn are_spent(&self) -> bool {
        self.0.get() == 0
    }

    /// Uses some, and returns whether any are left.
    fn take(&self, looks: usize) -> bool {
        self.0.set(self.0.get().saturating_sub(looks));
        !self.are_spent()
    }
}

/// The representation type required by the validator.
pub(super) struct Counted;

/// A value, or a part of one.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    value: &'a Value,
    looks: &'a Looks,
}

impl<'a> Part<'a> {
    /// A whole value.
    pub(super) fn new(value: &'a Value, looks: &'a Looks) -> Self {
        Self { value, looks }
    }

    /// The value as far as it may be accessed.
    fn look(self) -> &'a Value {
        let more = self.value.as_str().map_or(0, str::len) / BYTES_PER_LOOK;
        if self.looks.take(1 + more) { self.value } else { &Value::Null }
    }
}

/// A member name that is validated. It has no parts, so few schemas apply to it, and each name
/// was counted as a member.
pub(super) struct Name {
    text: Value,
    looks: Looks,
}

impl Default for Name {
    fn default() -> Self {
        Self { text: Value::Null, looks: Looks::new(usize::MAX) }
    }
}

impl Json for Counted {
    type Node<'a> = Part<'a>;
    type PreparedKey = String;
    type StringBuffer = Name;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Name, string: &str, read: impl FnOnce(Part<'_>) -> T) -> T {
        buffer.text = string.into();
        read(Part::new(&buffer.text, &buffer.looks))
    }
}

impl<'a> Node<'a, Counted> for Part<'a> {
    type Object = Members<'a>;
    type Array = Items<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        Some(Members { members: self.look().as_object()?, looks: self.looks })
    }

    fn as_array(&self) -> Option<Items<'a>> {
        Some(Items { items: self.look().as_array()?, looks: self.looks })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.look().as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.look().as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.look().as_bool()
    }

    fn is_null(&self) -> bool {
        self.look().is_null()
    }

    fn json_type(&self) -> JsonType {
        match self.look() {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        jsonschema::json::cmp::equal(self.look(), expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(self.value)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.value).addr()))
    }
}

/// An object.
pub(super) struct Members<'a> {
    members: &'a Map<String, Value>,
    looks: &'a Looks,
}

impl<'a> Object<'a, Counted> for Members<'a> {
    type Node = Part<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.members.len()
    }

    fn get(&self, key: &String) -> Option<Part<'a>> {
        let is_left = self.looks.take(1);
        let value = self.members.get(key).filter(|_| is_left)?;
        Some(Part::new(value, self.looks))
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter { members: self.members.iter(), looks: self.looks }
    }
}

/// The members of an object, until the limit.
pub(super) struct MembersIter<'a> {
    members: map::Iter<'a>,
    looks: &'a Looks,
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Part<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next().filter(|_| self.looks.take(1))?;
        Some((name, Part::new(value, self.looks)))
    }
}

/// An array.
pub(super) struct Items<'a> {
    items: &'a [Value],
    looks: &'a Looks,
}

impl<'a> Array<'a, Counted> for Items<'a> {
    type Node = Part<'a>;
    type ElementsIter = ItemsIter<'a>;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn elements(&self) -> ItemsIter<'a> {
        ItemsIter { items: self.items.iter(), looks: self.looks }
    }

    fn is_unique(&self) -> bool {
        !self.looks.take(self.items.len()) || jsonschema::json::unique::is_unique(self.items)
    }
}

/// The items of an array, until the limit.
pub(super) struct ItemsIter<'a> {
    items: slice::Iter<'a, Value>,
    looks: &'a Looks,
}

impl<'a> Iterator for ItemsIter<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        let value = self.items.next().filter(|_| self.looks.take(1))?;
        Some(Part::new(value, self.looks))
    }
}
