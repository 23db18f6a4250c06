//! Figures: medians, and rows of `docs/benchmarks.json`.

use std::path::Path;

use serde_json::{Map, Value, json};

/// Values of one figure, one a round.
#[derive(Default)]
pub(crate) struct Series(Vec<f64>);

impl Series {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn median(&self) -> f64 {
        median(self.0.clone())
    }

    /// Words for a note: how far the rounds lie apart.
    pub(crate) fn spread(&self) -> String {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match (sorted.first(), sorted.last()) {
            (Some(least), Some(most)) => {
                format!("median of {} rounds, {} to {}", sorted.len(), rounded(*least), rounded(*most))
            }
            _ => "no rounds".to_owned(),
        }
    }
}

/// Median of the values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 0 { f64::midpoint(values[middle - 1], values[middle]) } else { values[middle] }
}

/// The value that this share of the values does not exceed.
pub(crate) fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * share).ceil() as usize;
    values[at.clamp(1, values.len()) - 1]
}

/// How a value is held against its target.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
    None,
}

/// One figure.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) target: Target,
    pub(crate) scenario: &'static str,
    pub(crate) note: String,
}

impl Figure {
    fn row(&self) -> Value {
        let (target, holds) = match self.target {
            Target::AtLeast(limit) => (json!(format!(">= {limit}")), json!(self.value >= limit)),
            Target::AtMost(limit) => (json!(format!("<= {limit}")), json!(self.value <= limit)),
            Target::None => (Value::Null, Value::Null),
        };
        json!({
            "name": self.name,
            "value": rounded(self.value),
            "unit": self.unit,
            "target": target,
            "holds": holds,
            "command": format!("cargo xtask bench {}", self.scenario),
            "note": self.note,
        })
    }
}

fn rounded(value: f64) -> f64 {
    let digits = if value.abs() >= 100.0 { 0 } else { 3 };
    let factor = 10f64.powi(digits);
    (value * factor).round() / factor
}

/// Prints the figures and puts them into the file, replacing rows of the same name.
pub(crate) fn publish(file: &Path, figures: &[Figure]) {
    let mut rows: Vec<Map<String, Value>> =
        std::fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    for figure in figures {
        let row = figure.row();
        println!("{row}");
        let row = row.as_object().expect("a row is an object").clone();
        match rows.iter_mut().find(|existing| existing["name"] == row["name"]) {
            Some(existing) => *existing = row,
            None => rows.push(row),
        }
    }
    rows.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    let lines: Vec<String> = rows.iter().map(|row| format!("  {}", Value::Object(row.clone()))).collect();
    std::fs::write(file, format!("[\n{}\n]\n", lines.join(",\n"))).expect("the figures file can be written");
}
