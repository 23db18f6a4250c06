//! The members of the JSON object, each value as it stands in the line.

use core::fmt;
use std::borrow::Cow;
use std::collections::BTreeMap;

use dlo_core::{Envelope, Timestamp, limits};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::EventError;

/// Most members of one event: the envelope's own attributes, headers and agent context.
const MAX_MEMBERS: usize = 2 * limits::MAX_HEADERS + 64;
/// Longest value of an attribute as it stands in the line: every character may be written as an escape of six.
const MAX_RAW_BYTES: usize = 6 * limits::MAX_ATTRIBUTE_BYTES + 2;
/// Longest name of an attribute, in bytes. CloudEvents asks for at most 20.
const MAX_NAME: usize = 64;

/// Members by name that were not taken yet.
pub(super) struct Members<'a>(BTreeMap<Cow<'a, str>, &'a RawValue>);

impl<'a> Members<'a> {
    /// Splits a line into its members.
    pub(super) fn read(text: &'a str) -> Result<Self, EventError> {
        let object: Object<'a> = serde_json::from_str(text).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => EventError::NotObject,
            _ => EventError::NotJson { column: error.column() },
        })?;
        if object.seen > MAX_MEMBERS {
            return Err(EventError::TooManyAttributes { seen: object.seen, limit: MAX_MEMBERS });
        }
        let mut members = BTreeMap::new();
        for (at, (name, value)) in object.members.into_iter().enumerate() {
            if !is_name(&name) {
                return Err(EventError::AttributeName { position: at + 1 });
            }
            if members.contains_key(&name) {
                return Err(EventError::Twice { attribute: name.into_owned() });
            }
            members.insert(name, value);
        }
        Ok(Self(members))
    }

    /// Takes a value as it stands.
    pub(super) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        self.0.remove(name)
    }

    /// Takes a text.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, EventError> {
        match self.take(name) {
            Some(raw) if is_null(raw) => Ok(None),
            Some(raw) if raw.get().starts_with('"') => string(name, raw).map(Some),
            Some(_) => Err(EventError::invalid(name, "must be a text")),
            None => Ok(None),
        }
    }

    /// Takes a text that must be there and not be empty.
    pub(super) fn required(&mut self, name: &'static str) -> Result<String, EventError> {
        let text = self.text(name)?.ok_or(EventError::Missing { attribute: name })?;
        if text.is_empty() { Err(EventError::invalid(name, "must not be empty")) } else { Ok(text) }
    }

    /// Takes an RFC 3339 time.
    pub(super) fn time(&mut self, name: &str) -> Result<Option<Timestamp>, EventError> {
        let rule = "must be an RFC 3339 time with an offset, such as 2026-11-30T12:00:00Z";
        self.text(name)?.map(|text| text.parse().map_err(|_| EventError::invalid(name, rule))).transpose()
    }

    /// Takes the text of an extension attribute: a text, a whole number, `true` or `false`.
    pub(super) fn value(&mut self, name: &str) -> Result<Option<String>, EventError> {
        self.take(name).map_or(Ok(None), |raw| scalar(name, raw))
    }

    /// Takes a whole number, written as one or as a text.
    pub(super) fn number(&mut self, name: &str) -> Result<Option<u64>, EventError> {
        let rule = "must be a whole number from 0 to 18446744073709551615";
        self.value(name)?.map(|text| text.parse().map_err(|_| EventError::invalid(name, rule))).transpose()
    }

    /// Whatever was not taken: agent context and headers.
    pub(super) fn rest(self, envelope: &mut Envelope) -> Result<(), EventError> {
        for (name, raw) in self.0 {
            let Some(value) = scalar(&name, raw)? else { continue };
            match name.strip_prefix("dloagent").filter(|rest| !rest.is_empty()) {
                Some(rest) => envelope.agent.insert(rest.to_owned(), value),
                None => envelope.headers.insert(name.into_owned(), value),
            };
        }
        Ok(())
    }
}

/// Whether CloudEvents allows the name; `data_base64` is a member of the JSON format, not an attribute.
fn is_name(name: &str) -> bool {
    name == "data_base64"
        || (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

fn string(name: &str, raw: &RawValue) -> Result<String, EventError> {
    if raw.get().len() > MAX_RAW_BYTES {
        return Err(EventError::invalid(name, "must be at most 2048 bytes"));
    }
    serde_json::from_str(raw.get()).map_err(|_| EventError::invalid(name, "must be a text of whole characters"))
}

fn scalar(name: &str, raw: &RawValue) -> Result<Option<String>, EventError> {
    let text = raw.get();
    match text.as_bytes()[0] {
        b'"' => string(name, raw).map(Some),
        b'n' => Ok(None),
        b't' | b'f' => Ok(Some(text.to_owned())),
        b'-' | b'0'..=b'9' if text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() => Ok(Some(text.to_owned())),
        _ => Err(EventError::invalid(name, "must be a text, a whole number, true or false")),
    }
}

/// An object with its members in order, doubles included. Serde's own maps would keep the last of two silently.
struct Object<'a> {
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
    seen: usize,
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut object = Object { members: Vec::new(), seen: 0 };
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            object.seen += 1;
            if object.seen > MAX_MEMBERS {
                map.next_value::<IgnoredAny>()?;
            } else {
                object.members.push((name, map.next_value()?));
            }
        }
        Ok(object)
    }
}
