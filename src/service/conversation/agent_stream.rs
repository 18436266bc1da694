//! Agents that open a WebSocket to the engine: the call that a token is for.

use ringer_base::error::{Error, Result};
use ringer_model::error_code::ErrorCode;
use ringer_model::result::ResultDoc;
use ringer_model::status::ResultStatus;
use subtle::ConstantTimeEq;

use super::Conversations;
use super::inbound_address::{Goal, InboundAddress, stage};
use super::stream_address::{place_of, url_of};

/// Organization and result that a token is for.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamGoal {
    /// The token is unknown or has expired.
    Unknown,
    /// The call of the token runs, that of this result.
    InUse(i64),
    /// The call of this token is over.
    Over,
    /// A result that waits for its call.
    Address(InboundAddress),
}

impl Conversations {
    /// Returns whom a token is for.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn stream_goal(&self, token: &str) -> Result<StreamGoal> {
        let Some((organization, result_id)) = place_of(token) else { return Ok(StreamGoal::Unknown) };
        let mut db = self.store.org(&organization).read().await?;
        let row = match db.find::<ResultDoc>(result_id).await {
            Ok(Some(row)) => row,
            Ok(None) | Err(Error::NotFound(_)) => return Ok(StreamGoal::Unknown),
            Err(error) => return Err(error),
        };
        let given = url_of(&row.doc);
        let known = given.rsplit('/').next().unwrap_or_default();
        if known.is_empty() || !bool::from(known.as_bytes().ct_eq(token.as_bytes())) {
            return Ok(StreamGoal::Unknown);
        }
        let body = &row.doc.body;
        let never_came = body.error_code == Some(ErrorCode::InboundNoIncomingCall);
        Ok(match body.status {
            ResultStatus::Ready => {
                let unresponsive = stage(&mut db, &row).await?.is_some_and(|stage| stage.is_unresponsive());
                StreamGoal::Address(InboundAddress {
                    organization,
                    unresponsive,
                    login: None,
                    goal: Goal::Result(result_id),
                })
            }
            ResultStatus::Dispatched | ResultStatus::Running => StreamGoal::InUse(result_id),
            ResultStatus::Initializing | ResultStatus::Queued => StreamGoal::Unknown,
            _ if never_came => StreamGoal::Unknown,
            _ => StreamGoal::Over,
        })
    }
}
