//! Reads values by key from flag, environment, file or default, and keeps what was found and what is wrong.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::secrets::{SECRET_HINT, is_secret_name};
use super::setting::{Setting, kind_of};
use super::text::{FileText, nearest};
use super::{Origin, Overrides, Problem, Shown};
use crate::env_vars;

/// Position in the file, for order; problems outside of it come first.
type Position = (usize, usize);

/// What reading has found so far.
pub(super) struct Reader<'a> {
    pub(super) file: Option<&'a FileText>,
    env: &'a dyn Fn(&str) -> Option<String>,
    overrides: &'a Overrides,
    shown: Vec<Shown>,
    /// Keys that were asked for.
    asked: BTreeSet<String>,
    /// Where each value that somebody gave stands.
    places: BTreeMap<String, (Position, String)>,
    problems: Vec<(Position, Problem)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        file: Option<&'a FileText>,
        env: &'a dyn Fn(&str) -> Option<String>,
        overrides: &'a Overrides,
    ) -> Self {
        Self {
            file,
            env,
            overrides,
            shown: Vec::new(),
            asked: BTreeSet::new(),
            places: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    /// A flag that stands over no key would be ignored silently.
    pub(super) fn refuse_unknown_overrides(&mut self) {
        for (key, flag, _) in self.overrides.values.iter().filter(|(key, _, _)| !self.asked.contains(*key)) {
            let place = Origin::Flag(flag).to_string();
            let message = "is not a known key".to_owned();
            self.problems.push(((0, 0), Problem { place, key: (*key).to_owned(), message, hint: None }));
        }
    }

    /// What was found, and what is wrong in the order of the file.
    pub(super) fn finish(mut self) -> (Vec<Shown>, Vec<Problem>) {
        self.problems.sort_by_key(|(position, _)| *position);
        (self.shown, self.problems.into_iter().map(|(_, problem)| problem).collect())
    }

    /// A problem at a place of the file.
    pub(super) fn problem_at(&mut self, span: &Range<usize>, key: &str, message: impl Into<String>) {
        self.problem_with_hint(span, key, message, None);
    }

    /// The same with a way out.
    pub(super) fn problem_with_hint(
        &mut self,
        span: &Range<usize>,
        key: &str,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        let (position, place) = self.locate(span);
        self.problems.push((position, Problem { place, key: key.to_owned(), message: message.into(), hint }));
    }

    /// A problem of the first of these keys that somebody gave a value; if nobody did, of the first.
    pub(super) fn problem_of(&mut self, keys: &[String], message: impl Into<String>) {
        let given = keys.iter().find_map(|key| self.places.get(key).map(|place| (key, place.clone())));
        let (key, (position, place)) = match (given, keys.first()) {
            (Some((key, place)), _) => (key.as_str(), place),
            (None, first) => (first.map_or("", String::as_str), ((0, 0), "configuration".to_owned())),
        };
        self.problems.push((position, Problem { place, key: key.to_owned(), message: message.into(), hint: None }));
    }

    fn locate(&self, span: &Range<usize>) -> (Position, String) {
        let file = self.file.expect("spans come from the file");
        (file.position(span), file.place(span))
    }

    fn take_text<T: Setting>(&mut self, key: &str, text: &str, origin: Origin) -> Option<(T, Origin)> {
        let place = ((0, 0), origin.to_string());
        self.places.insert(key.to_owned(), place.clone());
        match T::from_text(text) {
            Ok(value) => Some((value, origin)),
            Err(message) => {
                let problem = Problem { place: place.1, key: key.to_owned(), message, hint: None };
                self.problems.push((place.0, problem));
                None
            }
        }
    }

    fn take_value<T: Setting>(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<(T, Origin)> {
        let place = self.locate(&value.span());
        let line = place.0.0;
        self.places.insert(key.to_owned(), place);
        let path = self.file.expect("spans come from the file").path.clone();
        match T::from_value(value.get_ref()) {
            Ok(value) => Some((value, Origin::File { path, line })),
            Err(rule) => {
                self.problem_at(&value.span(), key, rule);
                None
            }
        }
    }
}

/// One table of the file, with the keys that were asked for.
pub(super) struct Section<'r, 'a, 't> {
    pub(super) reader: &'r mut Reader<'a>,
    table: Option<&'t DeTable<'t>>,
    prefix: String,
    known: Vec<&'static str>,
    /// Values that nobody gave are shown too.
    show_defaults: bool,
}

impl<'r, 'a, 't> Section<'r, 'a, 't> {
    /// The table behind `prefix` (`engine.`; empty for the file itself).
    pub(super) fn new(reader: &'r mut Reader<'a>, prefix: impl Into<String>, table: Option<&'t DeTable<'t>>) -> Self {
        Self { reader, table, prefix: prefix.into(), known: Vec::new(), show_defaults: true }
    }

    /// The same, but only what was given is shown: the rest is inherited.
    pub(super) fn inheriting(mut self) -> Self {
        self.show_defaults = false;
        self
    }

    /// Full key of a name in this table.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The value as it stands in the file, if it does.
    pub(super) fn raw(&mut self, name: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.known.push(name);
        self.table.and_then(|table| table.iter().find(|(key, _)| key.get_ref() == name)).map(|(_, value)| value)
    }

    /// A value with its origin, if anybody gave one and it is valid.
    fn find<T: Setting>(&mut self, name: &'static str) -> Option<(T, Origin)> {
        let in_file = self.raw(name);
        let key = self.key(name);
        self.reader.asked.insert(key.clone());
        if let Some((flag, text)) = self.reader.overrides.get(&key) {
            return self.reader.take_text(&key, text, Origin::Flag(flag));
        }
        let variable = env_vars::ALL.iter().find(|variable| variable.key == key);
        if let Some((variable, text)) = variable.and_then(|v| (self.reader.env)(v.name).map(|text| (v.name, text))) {
            return self.reader.take_text(&key, &text, Origin::Env(variable));
        }
        self.reader.take_value(&key, in_file?)
    }

    /// A value, or its default.
    pub(super) fn value<T: Setting>(&mut self, name: &'static str, default: T) -> T {
        self.value_from(name, default).0
    }

    /// A value, or its default, with its origin.
    pub(super) fn value_from<T: Setting>(&mut self, name: &'static str, default: T) -> (T, Origin) {
        let (value, origin) = self.find(name).unwrap_or((default, Origin::Default));
        self.show(name, value.show(), &origin);
        (value, origin)
    }

    /// A value that need not be there.
    pub(super) fn optional<T: Setting>(&mut self, name: &'static str) -> Option<T> {
        self.optional_from(name).map(|(value, _)| value)
    }

    /// A value that need not be there, with its origin.
    pub(super) fn optional_from<T: Setting>(&mut self, name: &'static str) -> Option<(T, Origin)> {
        let found = self.find::<T>(name);
        match &found {
            Some((value, origin)) => self.show(name, value.show(), origin),
            None => self.show(name, String::new(), &Origin::Default),
        }
        found
    }

    /// Replaces what is shown for a value that was just read.
    pub(super) fn reshow(&mut self, name: &'static str, value: &impl Setting) {
        let key = self.key(name);
        if let Some(shown) = self.reader.shown.iter_mut().rfind(|shown| shown.key == key) {
            shown.value = value.show();
        }
    }

    /// Shows a value that was read by other means.
    pub(super) fn show(&mut self, name: &str, value: String, origin: &Origin) {
        if self.show_defaults || *origin != Origin::Default {
            let key = self.key(name);
            self.reader.shown.push(Shown { key, value, origin: origin.clone() });
        }
    }

    /// A table in this table, if it is there.
    pub(super) fn subtable(&mut self, name: &'static str) -> Option<&'t DeTable<'t>> {
        let value = self.raw(name)?;
        let table = value.get_ref().as_table();
        if table.is_none() {
            let key = self.key(name);
            let message = format!("must be a table, not {}", kind_of(value.get_ref()));
            self.reader.problem_at(&value.span(), &key, message);
        }
        table
    }

    /// Reports every key that was not asked for.
    pub(super) fn finish(self) {
        let Some(table) = self.table else { return };
        for (name, _) in table.iter().filter(|(name, _)| !self.known.contains(&name.get_ref().as_ref())) {
            let key = self.key(name.get_ref());
            let hint = if is_secret_name(name.get_ref()) {
                SECRET_HINT.to_owned()
            } else {
                match nearest(name.get_ref(), &self.known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known here: {}", self.known.join(", ")),
                }
            };
            self.reader.problem_with_hint(&name.span(), &key, "is not a known key", Some(hint));
        }
    }
}
