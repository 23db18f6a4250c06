//! What became of the items of an operator's act.

use dlo_ports::store::{ActResult, RedriveResult};
use serde::Serialize;

use super::or_dash;
use crate::failure::code;
use crate::output::Row;

/// One item of an act and what became of it.
#[derive(Debug, Serialize)]
pub(crate) struct ActRow {
    item: String,
    result: &'static str,
    code: Option<&'static str>,
    detail: Option<String>,
    new_generation: Option<u32>,
    #[serde(skip)]
    done: bool,
}

impl ActRow {
    /// An item of an act on entries or destinations.
    pub(crate) fn of_act(item: String, result: &ActResult) -> Self {
        let (result, code, detail, done) = match result {
            ActResult::Done => ("done", None, None, true),
            ActResult::Unchanged => ("unchanged", None, Some("it was so already".to_owned()), true),
            ActResult::Missing => ("missing", Some(code::NOT_FOUND), Some("there is no such thing".to_owned()), false),
            ActResult::WrongState(state) => {
                let way_out = way_out(state).map(|text| format!(": {text}")).unwrap_or_default();
                ("refused", Some(code::REFUSED), Some(format!("not allowed in state {state}{way_out}")), false)
            }
        };
        Self { item, result, code, detail, new_generation: None, done }
    }

    /// An item of a redrive.
    pub(crate) fn of_redrive(item: String, result: &RedriveResult) -> Self {
        match result {
            RedriveResult::Redriven { key } => Self {
                item,
                result: "redriven",
                code: None,
                detail: Some(format!("{} generation {} is ready", key.entry, key.generation)),
                new_generation: Some(key.generation),
                done: true,
            },
            RedriveResult::Refused(refusal) => Self {
                item,
                result: "refused",
                code: Some(refusal.code()),
                detail: Some(refusal.to_string()),
                new_generation: None,
                done: false,
            },
            RedriveResult::Missing => Self {
                item,
                result: "missing",
                code: Some(code::NOT_FOUND),
                detail: Some("there is no such dead letter".to_owned()),
                new_generation: None,
                done: false,
            },
        }
    }

    /// Why not, if not.
    pub(crate) fn code(&self) -> Option<&'static str> {
        self.code
    }

    /// Whether the item is as it was asked to be.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }
}

/// What can be done with an entry or destination in a state in which the act is not allowed.
fn way_out(state: &str) -> Option<&'static str> {
    match state {
        "claimed" => Some("it is being sent; do it again when that has ended"),
        "dead_lettered" => Some("`dlo entries show` names its dead letter, `dlo redrive` releases that"),
        "open" => Some("nothing holds it"),
        _ => None,
    }
}

impl Row for ActRow {
    const COLUMNS: &'static [&'static str] = &["ITEM", "RESULT", "CODE", "DETAIL"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.item.clone(),
            self.result.to_owned(),
            or_dash(self.code.map(str::to_owned)),
            or_dash(self.detail.clone()),
        ]
    }
}
