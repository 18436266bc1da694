//! Conversations at whose end the database cannot be written: their records are kept, and stored later.

use ringer::model::error_code::ErrorCode;
use ringer::model::status::ResultStatus as S;
use ringer::service::Ended;
use rusqlite::Connection;
use serde_json::json;

use super::Fixture;

impl Fixture {
    /// Returns a result in whose conversation both sides have spoken, and its records.
    async fn with_records(&self) -> (i64, Ended) {
        let (_, simulation, _) = self.booth(json!({}), 1).await;
        let (_, ids) = self.run(simulation, json!({})).await;
        for step in [S::Initializing, S::Queued, S::Dispatched].windows(2) {
            let moved =
                self.service.conversations().advance(&self.caller.organization, ids[0], step[0], step[1], |_| {}).await;
            moved.expect("an allowed step");
        }
        (ids[0], records_of(&self.caller.organization, ids[0]))
    }

    /// Takes a table away, or gives it back: what needs it fails meanwhile.
    fn rename(&self, from: &str, to: &str) {
        let file = Connection::open(self.folder.path().join("ringer.db")).expect("it opens");
        file.execute_batch(&format!("ALTER TABLE {from} RENAME TO {to}")).expect("it is renamed");
    }

    fn has_kept(&self, id: i64) -> bool {
        self.folder.path().join(format!("ended/{id}.json")).is_file()
    }
}

fn records_of(organization: &str, id: i64) -> Ended {
    let event =
        json!({ "seq": 0, "sample": 0, "offset_ms": 0.0, "event": "call.answered", "side": "engine", "data": {} });
    let outcome = json!({
        "error": null, "ended_by": null, "end_reason": "dh_end_call", "ended_at_ms": super::START_MS + 9000,
        "is_written": false, "is_connected": true, "duration_ms": 8000, "sip_code": null, "q850_cause": null,
        "quality": null, "has_recording": false, "tool_calls": [], "own_faults": [], "notes": { "codec": "PCMU" },
        "warnings": ["it was windy"],
    });
    let value = json!({
        "organization": organization, "result_id": id, "attempt": 1, "connected_at_ms": super::START_MS + 1000,
        "timeline": [event], "transcript": null, "outcome": outcome,
    });
    serde_json::from_value(value).expect("they are records")
}

#[tokio::test]
async fn a_conversation_is_stored_by_the_next_start() {
    let mut f = Fixture::on_file().await;
    let (id, ended) = f.with_records().await;
    f.rename("results", "away");
    f.service.conversations().store_ended(ended, None).await.expect("it is kept");
    assert!(f.has_kept(id));
    assert_eq!(f.service.conversations().restore_ended().await, Ok(0), "the database is still away");
    assert!(f.has_kept(id));
    f.rename("away", "results");
    f.reopen().await;
    assert_eq!(f.service.runs().recover().await, Ok(0), "nothing was interrupted");
    let body = f.service.runs().result(&f.caller, id).await.expect("it is there").body;
    assert_eq!((body.status, body.error_code, body.duration_ms), (S::ConversationEnded, None, Some(8000)));
    assert_eq!(body.start_time.map(|at| at.0), Some(super::START_MS + 1000));
    assert_eq!(body.metadata["warnings"], json!(["it was windy"]));
    let timeline = f.service.conversations().timeline(&f.caller, id).await.expect("it is stored").events;
    assert_eq!(timeline.as_array().map(Vec::len), Some(1));
    assert!(!f.has_kept(id));
    let claimed = f.service.queue().claim(&["evaluate"], 1000).await.expect("claims");
    assert!(claimed.is_some(), "it is evaluated");
}

#[tokio::test]
async fn records_of_an_earlier_attempt_are_not_stored() {
    let f = Fixture::on_file().await;
    let (id, mut ended) = f.with_records().await;
    ended.attempt = 2;
    f.rename("results", "away");
    f.service.conversations().store_ended(ended, None).await.expect("it is kept");
    f.rename("away", "results");
    assert_eq!(f.service.conversations().restore_ended().await, Ok(1));
    assert_eq!(f.service.conversations().status_of(&f.caller.organization, id).await, Ok(S::Dispatched));
    assert!(!f.has_kept(id));
}

/// Returns the status of a result that could neither be stored nor kept at first; `gives_back`: the table comes back.
async fn status_after(gives_back: bool) -> (S, Option<ErrorCode>) {
    let f = Fixture::on_file().await;
    let (id, ended) = f.with_records().await;
    std::fs::write(f.folder.path().join("ended"), "no folder").expect("it is written");
    f.rename("timelines", "away");
    let mut stored = std::pin::pin!(f.service.conversations().store_ended(ended, None));
    for round in 0.. {
        tokio::select! {
            done = &mut stored => {
                done.expect("it is settled");
                break;
            }
            () = f.clock.advance_to_wait(2000) => if gives_back && round == 3 {
                f.rename("away", "timelines");
            },
        }
    }
    let body = f.service.runs().result(&f.caller, id).await.expect("it is there").body;
    (body.status, body.error_code)
}

#[tokio::test]
async fn a_conversation_that_cannot_be_kept_is_stored_late_or_said_to_be_lost() {
    assert_eq!(status_after(true).await, (S::ConversationEnded, None));
    assert_eq!(status_after(false).await, (S::SystemError, Some(ErrorCode::ResultNotStored)));
}
