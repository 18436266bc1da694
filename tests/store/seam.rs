//! Guarantees that every database gives to the code above it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringer::clock;
use ringer::config::Secret;
use ringer::model::api_key::Scope;
use ringer::store::db::{Cell, Database, Link, Row};
use ringer::store::{KeyRow, Location};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::databases;

/// Time limit of any step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const TABLE: &str = "CREATE TABLE things (id {SERIAL}, name TEXT NOT NULL UNIQUE, size BIGINT NOT NULL DEFAULT 0, \
                     part_of BIGINT REFERENCES things (id))";

/// A database with the table `things`.
struct Things {
    database: Database,
    location: Location,
    folder: TempDir,
}

impl Things {
    async fn new() -> Things {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let location = databases::empty(folder.path()).await;
        let database = Database::open(location.clone()).await.expect("it opens");
        databases::run(&location, &database.schema(TABLE)).await;
        Things { database, location, folder }
    }
}

async fn names(database: &Database) -> Vec<String> {
    let rows = database.reader().await.expect("a reader").rows("SELECT name FROM things ORDER BY name", &[]).await;
    rows.expect("rows").iter().map(|row| row.try_get("name").expect("a text")).collect()
}

async fn add(link: &mut Link, name: &str) -> Result<u64, String> {
    let sql = "INSERT INTO things (name) VALUES ($1)";
    link.execute(sql, &[name.into()]).await.map_err(|error| error.to_string())
}

async fn one(link: &mut Link, sql: &str, cells: &[Cell]) -> Row {
    link.row(sql, cells).await.expect("it runs").expect("it answers a row")
}

#[tokio::test]
async fn values_go_in_and_out_as_they_are() {
    let Things { database, .. } = &Things::new().await;
    let text = "{\"b\": 1, \"a\":  \"\\u0000 ünï 電話 'quoted' $1\"}";
    let mut link = database.write().await.expect("a turn");
    // Marks may come in any order and more than once.
    let sql = "INSERT INTO things (name, size) VALUES ($2, $1) RETURNING id, name, size, part_of, $1 + 1 AS more";
    let row = one(&mut link, sql, &[i64::MAX.saturating_sub(1).into(), text.into()]).await;
    assert_eq!(row.try_get::<String, _>("name").expect("a text"), text);
    assert_eq!(row.try_get::<i64, _>("more").expect("an integer"), i64::MAX);
    assert_eq!(row.try_get::<Option<i64>, _>("part_of").expect("NULL"), None);
    let row = one(&mut link, "SELECT SUM(size), COUNT(*), MAX(name), 1 FROM things", &[]).await;
    let sums = [0, 1, 3].map(|at: usize| row.try_get::<i64, _>(at).expect("an integer"));
    assert_eq!(sums, [i64::MAX - 1, 1, 1]);
    let none = link.row("SELECT 1 FROM things WHERE size = $1", &[Cell::Int(None)]).await;
    assert_eq!(none, Ok(None), "NULL equals nothing");
    drop(link);
    assert!(names(database).await.is_empty(), "what is not committed is undone");
}

#[tokio::test]
async fn texts_are_ordered_by_their_bytes_and_may_hold_any_character() {
    let Things { database, .. } = &Things::new().await;
    let mut link = database.write().await.expect("a turn");
    for name in ["b", "a", "B", "_", "é", "a\u{1}", "a\0b", "10", "a\0", "9", "Z"] {
        add(&mut link, name).await.expect("added");
    }
    link.commit().await.expect("kept");
    assert_eq!(names(database).await, ["10", "9", "B", "Z", "_", "a", "a\0", "a\0b", "a\u{1}", "b", "é"]);
    let mut link = database.reader().await.expect("a reader");
    let found = one(&mut link, "SELECT name FROM things WHERE name = $1", &["a\0".into()]).await;
    assert_eq!(found.try_get::<String, _>(0).expect("a text"), "a\0");
}

#[tokio::test]
async fn what_a_constraint_refuses_is_said_in_the_same_words() {
    let Things { database, .. } = &Things::new().await;
    let mut link = database.write().await.expect("a turn");
    add(&mut link, "a").await.expect("added");
    link.commit().await.expect("kept");
    let mut link = database.write().await.expect("a turn");
    let refused = add(&mut link, "a").await.expect_err("it is there");
    assert_eq!(refused, "UNIQUE constraint failed: things.name");
    drop(link);
    let mut link = database.write().await.expect("a turn");
    let orphan = link.execute("INSERT INTO things (name, part_of) VALUES ($1, 77)", &["b".into()]).await;
    assert_eq!(orphan.expect_err("no such thing").to_string(), "FOREIGN KEY constraint failed");
}

#[tokio::test]
async fn a_failed_statement_spoils_its_session_alone() {
    let Things { location, folder, .. } = &Things::new().await;
    let store = databases::open(location.clone(), folder.path()).await.expect("it opens");
    let mut first = store.org("o").write().await.expect("a turn");
    let organization = first.organization_named("first", clock::new_id(), 0).await.expect("made");
    let key = KeyRow {
        user_id: None,
        id: clock::new_id(),
        organization: "nobody".to_owned(),
        hash: "hash".to_owned(),
        prefix: String::new(),
        scope: Scope::Read,
        name: String::new(),
        revoked: false,
        created_ms: 0,
    };
    first.insert_key(&key).await.expect_err("there is no such organization");
    first.commit().await.expect_err("half of a piece of work is not kept");
    let mut second = store.org("o").write().await.expect("a turn");
    let again = second.organization_named("first", clock::new_id(), 0).await.expect("made");
    assert_ne!(organization, again, "the first one was undone");
    second.insert_key(&KeyRow { organization: again, ..key }).await.expect("now there is one");
    second.commit().await.expect("kept");
    assert!(store.holder_of("hash").await.expect("looked up").is_some());
    store.close().await;
}

#[tokio::test]
async fn writers_take_turns_and_lose_nothing() {
    let Things { location, .. } = &Things::new().await;
    // Two connections to one database, as two processes have them.
    let mut databases = Vec::new();
    for _ in 0..2 {
        databases.push(Arc::new(Database::open(location.clone()).await.expect("it opens")));
    }
    let mut link = databases[0].write().await.expect("a turn");
    add(&mut link, "counter").await.expect("added");
    link.commit().await.expect("kept");
    let count = async |database: Arc<Database>| {
        for _ in 0..10 {
            let mut link = database.write().await.expect("a turn");
            let row = one(&mut link, "SELECT size FROM things WHERE name = 'counter'", &[]).await;
            let size: i64 = row.try_get(0).expect("an integer");
            tokio::task::yield_now().await;
            link.execute("UPDATE things SET size = $1 WHERE name = 'counter'", &[(size + 1).into()])
                .await
                .expect("set");
            link.commit().await.expect("kept");
        }
    };
    let counters = (0..8).map(|n| count(databases[n % 2].clone()));
    timeout(PATIENCE, futures_util::future::join_all(counters)).await.expect("all have their turns");
    let mut link = databases[1].reader().await.expect("a reader");
    let row = one(&mut link, "SELECT size FROM things WHERE name = 'counter'", &[]).await;
    assert_eq!(row.try_get::<i64, _>(0).ok(), Some(80));
}

#[tokio::test]
async fn a_dropped_writer_is_undone_and_its_neighbours_are_kept() {
    let Things { database, .. } = &Things::new().await;
    let write = async |name: String, keep: bool| {
        let mut link = database.write().await.expect("a turn");
        add(&mut link, &name).await.expect("added");
        tokio::task::yield_now().await;
        if keep {
            link.commit().await.expect("kept");
        }
    };
    let writers = (0..40).map(|n| write(format!("{n:02}"), n % 3 != 0));
    timeout(PATIENCE, futures_util::future::join_all(writers)).await.expect("all have their turns");
    let expect: Vec<String> = (0..40).filter(|n| n % 3 != 0).map(|n| format!("{n:02}")).collect();
    assert_eq!(names(database).await, expect);
}

#[tokio::test]
async fn whoever_no_longer_waits_for_a_turn_is_passed_over() {
    let Things { database, .. } = &Things::new().await;
    let mut first = database.write().await.expect("a turn");
    add(&mut first, "first").await.expect("added");
    {
        let mut gone = Box::pin(database.write());
        assert!(futures_util::poll!(gone.as_mut()).is_pending(), "it is not its turn");
    }
    let second = async {
        let mut link = database.write().await.expect("a turn");
        add(&mut link, "second").await.expect("added");
        link.commit().await.expect("kept");
    };
    let both = async { tokio::join!(first.commit(), second) };
    timeout(PATIENCE, both).await.expect("nobody waits for ever").0.expect("kept");
    assert_eq!(names(database).await, ["first", "second"]);
}

#[tokio::test]
async fn no_password_is_shown() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    for url in ["postgres://u:tell-nobody@127.0.0.1:1/x", "postgres://u:tell-nobody@127.0.0.1:port/x"] {
        let location = Location::Server(Secret::new(url.to_owned()));
        let error = databases::open(location.clone(), folder.path()).await.expect_err("nobody is there").to_string();
        assert!(error.starts_with("the database server cannot be used: "), "{error}");
        assert!(!format!("{error}{location:?}").contains("tell-nobody"), "{error}");
    }
    let missing =
        databases::open(Path::new("/nowhere/ringer.db"), folder.path()).await.expect_err("no such folder").to_string();
    assert!(missing.contains("/nowhere/ringer.db"), "{missing}");
}
