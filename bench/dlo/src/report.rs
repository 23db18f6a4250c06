//! Figures: medians, and rows of `docs/benchmarks.json`.

use std::path::Path;

use serde_json::{Map, Value, json};

/// Median of the values; they are sorted in place.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
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
