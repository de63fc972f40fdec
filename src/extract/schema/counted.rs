//! A value as the validator sees it, which counts how often the validator looks.
//!
//! What a schema costs depends on the value: a few hundred bytes of schema may ask for more looks
//! at a few hundred bytes of value than there is time for, and a schema of fifty kinds needs few.
//! So it is not foreseen but counted, and when the looks are spent, all that is left of the value
//! is `null`, which no schema can go on with.

use crate::extract::LINE_BYTES_MAX;
use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object};
use serde_json::{Map, Number, Value, map};
use std::borrow::Cow;
use std::cell::Cell;
use std::slice;

/// Looks that every value gets; they take some tens of milliseconds.
const LOOKS_MIN: usize = 2_000_000;

/// Looks for each byte of a value, so that large values get what they need.
const LOOKS_PER_BYTE: usize = 8;

/// Bytes of a text that are read in one look.
const BYTES_PER_LOOK: usize = 16;

/// Looks that are left.
#[derive(Debug)]
pub(super) struct Looks(Cell<usize>);

impl Looks {
    /// This many.
    pub(super) fn new(looks: usize) -> Self {
        Self(Cell::new(looks))
    }

    /// As many as a value of this many bytes gets.
    pub(super) fn of(bytes: usize) -> Self {
        Self::new(LOOKS_MIN + LOOKS_PER_BYTE * bytes.min(LINE_BYTES_MAX))
    }

    /// Whether there are none left, so that what the validator said means nothing.
    pub(super) fn are_spent(&self) -> bool {
        self.0.get() == 0
    }

    /// Takes some, and says whether one is left after them.
    fn take(&self, looks: usize) -> bool {
        self.0.set(self.0.get().saturating_sub(looks));
        !self.are_spent()
    }
}

/// The representation, as the validator names it.
pub(super) struct Counted;

/// A value, or a part of one.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    value: &'a Value,
    looks: &'a Looks,
}

impl<'a> Part<'a> {
    /// All of a value.
    pub(super) fn new(value: &'a Value, looks: &'a Looks) -> Self {
        Self { value, looks }
    }

    /// What is there to be seen.
    fn look(self) -> &'a Value {
        let more = self.value.as_str().map_or(0, str::len) / BYTES_PER_LOOK;
        if self.looks.take(1 + more) { self.value } else { &Value::Null }
    }
}

/// A name of a member, where it is held against a schema. It has no parts, so the schemas that may
/// apply to it are few, and each name was counted as a member.
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

/// The members of an object, as long as there are looks.
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

/// The items of an array, as long as there are looks.
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
