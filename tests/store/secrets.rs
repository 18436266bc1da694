//! Secrets at rest: nobody who has the files of the database, or reads its tables, has them.

use std::path::Path;

use ringer::store::db::{Cell, Database, Row};
use ringer::store::idempotency::{RequestKey, Seen};
use ringer::store::vault::{KEY_FILE, Vault};
use ringer::store::{Location, Store};
use serde_json::{Value, json};

use super::{Fixture, START_MS, map, spec};

/// Every secret that an agent, the platforms and a webhook can have.
const WRITTEN: &str = "tell-nobody";

fn agent() -> Value {
    let secrets = [
        "websocket_password",
        "sip_password",
        "P1_token_webhook_auth",
        "P10_agent_token",
        "P11_client_secret",
        "P12_api_key",
    ];
    let mut agent = map(json!({ "name": "Desk", "http_webhook": "http://127.0.0.1:9/", "P11_bot_id": "b" }));
    agent.extend(secrets.map(|name| (name.to_owned(), json!(format!("{WRITTEN}-{name}")))));
    agent.into()
}

/// Returns the files, apart from the key file, or the tables in which a text is stored.
async fn find(f: &Fixture, text: &str) -> Vec<String> {
    match &f.location {
        Location::File(_) => in_files(f.folder.path(), text),
        Location::Server(_) => in_tables(&f.location, text).await,
    }
}

fn in_files(folder: &Path, text: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
    let files = files.filter(|file| file.path().is_file() && file.file_name() != KEY_FILE);
    let holds = |path: &Path| {
        let bytes = std::fs::read(path).expect("it can be read");
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    files.filter(|file| holds(&file.path())).map(|file| file.path().display().to_string()).collect()
}

async fn in_tables(location: &Location, text: &str) -> Vec<String> {
    let database = Database::open(location.clone()).await.expect("it opens");
    let mut link = database.reader().await.expect("a connection");
    let sql = "SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = current_schema()";
    let tables = link.rows(sql, &[]).await.expect("a query");
    let tables: Vec<String> = tables.iter().map(|row| row.try_get(0).expect("a name")).collect();
    assert!(tables.len() > 20, "{tables:?}");
    let mut found = Vec::new();
    for table in tables {
        let sql = format!("SELECT CAST(entry AS TEXT) FROM {table} AS entry");
        let holds = |row: &Row| row.try_get::<String, _>(0).expect("a text").contains(text);
        if link.rows(&sql, &[]).await.expect("a query").iter().any(holds) {
            found.push(table);
        }
    }
    drop(link);
    database.close().await;
    found
}

/// Runs statements on the database as nobody does who keeps its rules.
async fn raw(location: &Location, statements: &[(&str, &[&str])]) {
    let database = Database::open(location.clone()).await.expect("it opens");
    let mut link = database.write().await.expect("nobody writes");
    for (sql, values) in statements {
        let cells: Vec<Cell> = values.iter().map(|value| Cell::from(*value)).collect();
        link.execute(sql, &cells).await.expect("written");
    }
    link.commit().await.expect("kept");
    database.close().await;
}

#[tokio::test]
async fn no_secret_is_in_the_files_or_tables_of_the_database() {
    let mut f = Fixture::new().await;
    let added = f.service.library().add_agent(&f.caller, spec(agent())).await.expect("an agent");
    let key = added.http_webhook_key.clone().expect("a key");
    let platforms = json!({ "P3_api_key": format!("{WRITTEN}-P3"), "P6_credentials": { "private": WRITTEN } });
    f.service.library().update_integrations(&f.caller, map(platforms)).await.expect("kept");
    let webhook = json!({ "url": "http://127.0.0.1:9/", "event_types": ["simulation_ended"] });
    let webhook = f.service.watching().create_webhook(&f.caller, spec(webhook)).await.expect("a webhook");
    let made = f.service.library().create_key(&f.caller, spec(json!({ "scope": "read" }))).await.expect("a key");
    let request = RequestKey { organization: &f.caller.organization, route: "POST /v1/api-keys", key: "k" };
    let store = f.service.store();
    assert_eq!(store.begin_request(request, "h", START_MS).await, Ok(Seen::First));
    let answer = json!({ "api_key": made.api_key, "signing_key": webhook.signing_key }).to_string();
    store.finish_request(request, 200, &answer).await.expect("kept");
    let kept = Seen::Answered { status: 200, body: answer };
    assert_eq!(store.begin_request(request, "h", START_MS).await, Ok(kept));

    let record = f.service.library().agent(&f.caller, added.agent_id).await.expect("it");
    let token = record.p11_inbound_token.clone().expect("made with the bot");
    // While the process runs, its log of writes lies beside the database; after it, all is in one file.
    for _ in 0..2 {
        for secret in [WRITTEN, &key, &token, &webhook.signing_key, &made.api_key] {
            assert_eq!(find(&f, secret).await, [""; 0], "{secret}");
        }
        assert!(!find(&f, "Desk").await.is_empty(), "the search finds what is there");
        f.reopen().await;
    }
    let read = f.service.library().agent(&f.caller, added.agent_id).await.expect("it");
    assert_eq!(read.spec.sip_password.as_deref(), Some("tell-nobody-sip_password"));
    assert_eq!((read.http_webhook_key.as_deref(), read.p11_inbound_token), (Some(key.as_str()), Some(token)));
    let shown = format!("{record:?} {added:?} {webhook:?} {made:?}");
    assert!(![WRITTEN, &key, &webhook.signing_key, &made.api_key].iter().any(|secret| shown.contains(*secret)));
}

#[tokio::test]
async fn what_was_written_in_plain_is_read_and_sealed_at_the_next_start() {
    let mut f = Fixture::new().await;
    let id = f.agent(json!({ "name": "Desk" })).await;
    f.service.store().close().await;
    let plain = json!({ "spec": agent(), "http_webhook_key": "plain-key" }).to_string();
    let answer = json!({ "api_key": "rk_plain" }).to_string();
    let statements: [(&str, &[&str]); 3] = [
        ("DELETE FROM vault", &[]),
        ("UPDATE agents SET doc = $1", &[&plain]),
        (
            "INSERT INTO idempotency (org_id, route, idempotency_key, body_hash, status, body, created_ms) \
             VALUES ('o', 'POST /v1/api-keys', 'k', 'h', 200, $1, 1767603600000)",
            &[&answer],
        ),
    ];
    raw(&f.location, &statements).await;
    assert!(!find(&f, WRITTEN).await.is_empty() && !find(&f, "rk_plain").await.is_empty());
    f.reopen().await;
    for secret in [WRITTEN, "plain-key", "rk_plain"] {
        assert_eq!(find(&f, secret).await, [""; 0], "{secret}");
    }
    let read = f.service.library().agent(&f.caller, id).await.expect("it");
    assert_eq!(read.spec.sip_password.as_deref(), Some("tell-nobody-sip_password"));
    assert_eq!(read.http_webhook_key.as_deref(), Some("plain-key"));
    let request = RequestKey { organization: "o", route: "POST /v1/api-keys", key: "k" };
    let kept = Seen::Answered { status: 200, body: answer };
    assert_eq!(f.service.store().begin_request(request, "h", START_MS).await, Ok(kept));
}

/// A file from before there were keys still has plain secrets that no row holds any more. They are in free pages, and
/// in the log of writes, which another process keeps.
#[tokio::test]
async fn what_was_deleted_in_plain_is_in_no_file_after_the_first_start_with_a_key() {
    let mut f = Fixture::on_file().await;
    f.agent(json!({ "name": "Desk" })).await;
    f.service.store().close().await;
    let long = format!("{WRITTEN}-{}", "x".repeat(20_000));
    let deleted = json!({ "spec": { "name": "Old", "sip_password": long } }).to_string();
    let overwritten =
        json!({ "spec": { "name": "Desk", "sip_password": format!("overwritten-{WRITTEN}") } }).to_string();
    let plain = json!({ "spec": { "name": "Desk" } }).to_string();
    let open = || rusqlite::Connection::open(f.folder.path().join("ringer.db")).expect("opens");
    let insert = "INSERT INTO agents (org_id, doc, created_ms, updated_ms) SELECT org_id, $1, 0, 0 FROM agents LIMIT 1";
    for (sql, doc) in [(insert, &deleted), ("UPDATE agents SET doc = $1 WHERE id = 1", &overwritten)] {
        open().execute(sql, [doc]).expect("written");
    }
    let other = open();
    let kept = json!({ "spec": { "name": "Log", "sip_password": format!("logged-{WRITTEN}") } }).to_string();
    other.execute("UPDATE agents SET doc = $1 WHERE id > 1", [&kept]).expect("written");
    other.execute("DELETE FROM agents WHERE id > 1", []).expect("deleted");
    other.execute("UPDATE agents SET doc = $1", [&plain]).expect("written");
    other.execute("DELETE FROM vault", []).expect("there were no keys");
    for secret in [format!("{WRITTEN}-xxx"), format!("overwritten-{WRITTEN}"), format!("logged-{WRITTEN}")] {
        assert!(!in_files(f.folder.path(), &secret).is_empty(), "{secret} is left");
    }
    f.reopen().await;
    assert_eq!(in_files(f.folder.path(), WRITTEN), [""; 0]);
    assert_eq!(f.service.library().all_agents(&f.caller).await.expect("agents").len(), 1);
    drop(other);
    f.reopen().await;
    assert_eq!(in_files(f.folder.path(), WRITTEN), [""; 0]);
}

#[tokio::test]
async fn keys_are_changed_and_a_wrong_one_is_refused_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ringer.db");
    let vault = |keys: &[&str]| Vault::new(keys.iter().copied()).expect("there is a key");
    let open = |keys: &'static [&'static str]| Store::open(&path, vault(keys));
    open(&["first"]).await.expect("a new database").close().await;
    let error = open(&["second"]).await.expect_err("another key").to_string();
    let (first, second) = (vault(&["first"]), vault(&["second"]));
    let expect = format!(
        "the secrets in the database are sealed by the key {}, and {} is set",
        first.key_name(),
        second.key_name()
    );
    assert!(error.starts_with(&expect) && error.contains("security.secret_key"), "{error}");
    open(&["second", "first"]).await.expect("the first still opens").close().await;
    open(&["second"]).await.expect("all is sealed by the second").close().await;
    assert!(open(&["first"]).await.is_err());
}

#[tokio::test]
async fn a_changed_key_seals_everything_again() {
    let mut f = Fixture::on_file().await;
    let id = f.agent(agent()).await;
    f.service.store().close().await;
    let on_file = std::fs::read_to_string(f.folder.path().join(KEY_FILE)).expect("the key file");
    let path = f.folder.path().join("ringer.db");
    let vault = Vault::new(["new", on_file.trim()]).expect("keys");
    Store::open(&path, vault).await.expect("opens").close().await;
    std::fs::remove_file(f.folder.path().join(KEY_FILE)).expect("no longer needed");
    std::fs::write(f.folder.path().join(KEY_FILE), "new").expect("written");
    f.reopen().await;
    let read = f.service.library().agent(&f.caller, id).await.expect("it");
    assert_eq!(read.spec.sip_password.as_deref(), Some("tell-nobody-sip_password"));
}
