//! An application that shares its SQLite file with the outbox: an order and its event are saved together, or neither is.
//!
//! `cargo run -p dlo --example shared_file`
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;

use dlo::Outbox;
use dlo::core::{DestinationSpec, Duplicates, EngineOptions, Payload};
use dlo::engine::Until;
use dlo::ports::store::{EntryFilter, PageRequest};
use dlo::rusqlite::{Connection, TransactionBehavior};
use dlo::sqlite::Attach;

/// Saves an order and its event in one transaction, which ends as said.
fn place_order(application: &mut Connection, outbox: &Outbox, order: i64, commit: bool) -> Result<(), Box<dyn Error>> {
    // IMMEDIATE: a transaction that reads first and writes later can't wait for another writer.
    let transaction = application.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute("INSERT INTO orders (id) VALUES (?1)", [order])?;
    let payload = Payload::json(format!(r#"{{"order": {order}}}"#));
    let event = outbox.item("com.example.order.placed", payload).to("warehouse".parse()?);
    outbox.enqueue_in(&transaction, &[event])?;
    if commit {
        transaction.commit()?;
    } else {
        transaction.rollback()?;
    }
    Ok(())
}

/// Places one order and takes another back; answers with the numbers of orders, of entries, and of entries delivered.
pub(crate) async fn run(file: &Path) -> Result<(i64, usize, u64), Box<dyn Error>> {
    let mut application = Connection::open(file)?;
    application.pragma_update(None, "journal_mode", "WAL")?;
    application.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY)")?;

    let outbox = Outbox::builder()
        .sqlite(file)
        .attach(Attach::Application)
        .destination(DestinationSpec::new("warehouse".parse()?, "noop", Duplicates::Tolerated))
        .open()
        .await?;
    place_order(&mut application, &outbox, 1, true)?;
    place_order(&mut application, &outbox, 2, false)?;

    let orders = application.query_row("SELECT count(*) FROM orders", [], |row| row.get(0))?;
    let page = PageRequest { after: None, limit: 10 };
    let entries = outbox.reader().entries(EntryFilter::default(), page).await?.rows.len();

    let engine = outbox.engine(EngineOptions::new("example".parse()?))?;
    engine.run_until(Until::Empty, std::future::pending()).await?;
    let delivered = outbox.reader().stats().await?.destinations[0].delivered_total;
    Ok((orders, entries, delivered))
}

#[tokio::main]
#[allow(dead_code)] // the tests call `run`
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (orders, entries, delivered) = run(&folder.path().join("application.db")).await?;
    println!(
        "{orders} order, {entries} entry, {delivered} delivered; of the order that was taken back there is nothing"
    );
    Ok(())
}
