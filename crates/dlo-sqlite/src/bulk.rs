//! Many rows by few statements: a statement of several rows opens its cursors once, and finds the end of an index again
//! where the row before left it.

use dlo_ports::StoreError;
use rusqlite::{CachedStatement, Connection, ToSql};

use crate::error::Doing;

/// Rows of one statement. More gain nothing that could be measured.
pub(crate) const ROWS: usize = 16;

/// Inserts a known number of rows of `N` values.
///
/// The statements say `INSERT OR FAIL`: what was inserted before a failure stays, so that SQLite keeps no journal of the
/// statement. Whoever calls this rolls the whole verb back when it fails.
pub(crate) struct Bulk<'c, const N: usize> {
    many: CachedStatement<'c>,
    one: CachedStatement<'c>,
    doing: &'static str,
    /// Rows that are still to come.
    left: usize,
    /// Rows that `many` has by now.
    bound: usize,
    /// Rows that were inserted; those that gave way to a conflict are not.
    inserted: usize,
}

impl<'c, const N: usize> Bulk<'c, N> {
    /// Prepares for `rows` rows. `sql` inserts one row of the parameters `?1` to `?N`; `many` is [`repeated`] of it.
    pub(crate) fn prepare(
        tx: &'c Connection,
        sql: &str,
        many: &str,
        rows: usize,
        doing: &'static str,
    ) -> Result<Self, StoreError> {
        let (many, one) = (tx.prepare_cached(many).doing(doing)?, tx.prepare_cached(sql).doing(doing)?);
        Ok(Self { many, one, doing, left: rows, bound: 0, inserted: 0 })
    }

    /// Takes the next row.
    pub(crate) fn add(&mut self, values: [&dyn ToSql; N]) -> Result<(), StoreError> {
        let doing = self.doing;
        let is_one = self.bound == 0 && self.left < ROWS;
        self.left = self.left.saturating_sub(1);
        let statement = if is_one { &mut self.one } else { &mut self.many };
        for (index, value) in values.iter().enumerate() {
            statement.raw_bind_parameter(self.bound * N + index + 1, value).doing(doing)?;
        }
        if !is_one {
            self.bound = (self.bound + 1) % ROWS;
        }
        if self.bound == 0 {
            self.inserted += statement.raw_execute().doing(doing)?;
        }
        Ok(())
    }

    /// How many rows were inserted.
    pub(crate) fn inserted(&self) -> usize {
        self.inserted
    }
}

/// The statement for several rows out of that for one: its tuple of values is repeated with further parameters. The tuple
/// has no parentheses of its own.
pub(crate) fn repeated(sql: &str, parameters: usize) -> String {
    let (head, values) = sql.split_once("VALUES ").unwrap_or((sql, ""));
    let (tuple, tail) = values.split_at(values.find(')').map_or(values.len(), |end| end + 1));
    let rows: Vec<String> = (0..ROWS).map(|row| shifted(tuple, row * parameters)).collect();
    format!("{head}VALUES {}{tail}", rows.join(", "))
}

/// A tuple with `by` added to the number of each parameter.
fn shifted(tuple: &str, by: usize) -> String {
    let mut parts = tuple.split('?');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = part.split_at(digits);
        let number: usize = number.parse().unwrap_or_default();
        out.push('?');
        out.push_str(&(number + by).to_string());
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SQL: &str = "INSERT OR FAIL INTO t (a, b, c, d) VALUES (?1, 'x', ?2, ?1)";

    #[test]
    fn parameters_of_each_row_are_its_own() {
        assert_eq!(shifted("(?1, 'x', ?12, ?1)", 12), "(?13, 'x', ?24, ?13)");
        assert!(
            repeated(SQL, 2).starts_with("INSERT OR FAIL INTO t (a, b, c, d) VALUES (?1, 'x', ?2, ?1), (?3, 'x', ?4")
        );
    }

    #[test]
    fn every_number_of_rows_is_saved_in_order() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE t (a, b, c, d)").unwrap();
        let many = repeated(SQL, 2);
        for rows in [0, 1, ROWS - 1, ROWS, ROWS + 1, 3 * ROWS, 3 * ROWS + 5] {
            conn.execute_batch("DELETE FROM t").unwrap();
            let mut bulk = Bulk::prepare(&conn, SQL, &many, rows, "test").unwrap();
            for row in 0..rows as i64 {
                bulk.add([&row, &(row * 10)]).unwrap();
            }
            let saved: Vec<(i64, i64, i64)> = conn
                .prepare("SELECT a, c, d FROM t ORDER BY rowid")
                .unwrap()
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            assert_eq!(saved, (0..rows as i64).map(|row| (row, row * 10, row)).collect::<Vec<_>>());
        }
    }
}
