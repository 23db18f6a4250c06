//! A table of the file as the JSON object that an emitter takes as its settings.

use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

/// The table as a JSON object; names in order, so that the same settings give the same text.
pub(super) fn object(table: &DeTable<'_>) -> Result<String, &'static str> {
    let value = Value::Object(map(table)?);
    Ok(value.to_string())
}

fn map(table: &DeTable<'_>) -> Result<Map<String, Value>, &'static str> {
    table.iter().map(|(name, item)| Ok((name.get_ref().to_string(), value(item.get_ref())?))).collect()
}

fn value(value_in: &DeValue<'_>) -> Result<Value, &'static str> {
    Ok(match value_in {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Integer(number) => {
            let number = i128::from_str_radix(number.as_str(), number.radix()).ok().and_then(Number::from_i128);
            Value::Number(number.ok_or("has a number that is too large")?)
        }
        DeValue::Float(number) => {
            let number = number.as_str().parse().ok().and_then(Number::from_f64);
            Value::Number(number.ok_or("has a number that is not finite")?)
        }
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| value(item.get_ref())).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Value::Object(map(table)?),
    })
}
