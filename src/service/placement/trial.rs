//! Tests of an agent's line: a call of the engine's own caller, for which no result stands and of which nothing is
//! kept.

use ringer_base::guard::Guard;
use ringer_engine::Destination;
use ringer_engine::line_check::{Line, Reach};
use ringer_media::seed::Seed;
use ringer_model::agent::{AgentDoc, AgentMode, ConnectionType};
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::error_code::{ErrorCode, Platform, PlatformFault, Setting};
use ringer_provider::messages::{Contact, PlatformAgent};
use ringer_transport::sip::address::Address;
use url::Url;

use super::adapter::{chat, known_platform};
use super::platform::credentials;
use super::text::check_contact;
use super::{CallRows, Obstacle, PlacementSettings, Placements, PreparedCall};
use crate::NotDone;

/// Words of the caller of a test.
const INTENT: &str = "Hello, this is a test of the line.";

/// Ways in which the line of an agent can be tested.
pub enum Trial {
    /// A call that the engine is to place.
    Call(Box<PreparedCall>),
    /// A server that messages go to: it is connected to, and told nothing.
    Server(Line),
    /// Nothing can be dialled: the text says why.
    Idle(String),
}

impl Placements {
    /// Returns the test of an agent's line, once its settings are complete.
    ///
    /// # Errors
    /// The setting that is missing, or a fault of the store.
    pub async fn trial(
        &self,
        organization: &str,
        agent: AgentDoc,
        terms: &PlacementSettings,
    ) -> Result<Trial, NotDone<Obstacle>> {
        let mut db = self.store.org(organization).read().await?;
        let platforms = credentials(&mut db, agent.spec.connection()).await?;
        drop(db);
        let human = DigitalHumanSpec { intent: INTENT.to_owned(), ..DigitalHumanSpec::default() };
        let mut rows = CallRows { agent, platforms, human, seed: Seed(1), ..CallRows::default() };
        if rows.agent_calls() {
            return Ok(Trial::Idle("the agent calls by itself: nothing is dialled".to_owned()));
        }
        if rows.agent.spec.is_sms() || rows.agent.spec.connection() == Some(ConnectionType::Email) {
            return Ok(Trial::Idle("messages of a carrier cannot be tested without sending one".to_owned()));
        }
        if rows.agent.spec.mode == AgentMode::Text {
            if let Some(Contact::Platform(agent)) = chat::contact(self, &rows, organization, 0)? {
                return Ok(Trial::Server(platform_server(&rows, &agent)?));
            }
            check_contact(&rows, self.poster.clone(), &self.settings)?;
            return Ok(Trial::Server(server(&rows)?));
        }
        self.find_address(organization, &mut rows).await?;
        let prepared = rows.place(terms, &self.settings).await?;
        Ok(Trial::Call(Box::new(prepared)))
    }

    /// Returns the rules for finding the addresses of agents.
    pub fn reach(&self) -> Reach {
        let guard = Guard::new(self.settings.allow_private_agents).trusting(&self.settings.roots);
        Reach { names: self.settings.names.clone(), guard }
    }

    /// Admits the number of a test, as if it were that of a call, under an id of the test's own. A call without a
    /// number is admitted at once.
    ///
    /// # Errors
    /// The limit that refuses the number, or a fault of the store.
    pub async fn admit_trial(
        &self,
        organization: &str,
        trial_id: i64,
        prepared: &mut PreparedCall,
    ) -> Result<(), NotDone<Obstacle>> {
        let Some(outgoing) = prepared.dial.clone() else { return Ok(()) };
        let mut db = self.store.org(organization).write().await?;
        let caller = self.admit_under(&mut db, trial_id, &outgoing).await?;
        db.commit().await?;
        self.show_admitted(prepared, &outgoing, caller);
        Ok(())
    }

    /// Gives back the place of a test's call, and the minutes that it has not used.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn end_trial(&self, organization: &str, trial_id: i64, used_ms: i64) -> ringer_base::error::Result<()> {
        let mut db = self.store.org(organization).write().await?;
        for dial in db.end_dials(trial_id).await? {
            db.add_dialled(&dial, used_ms.min(dial.reserved_ms) - dial.reserved_ms).await?;
        }
        db.commit().await
    }
}

/// Returns the server of an agent that writes.
fn server(rows: &CallRows) -> Result<Line, Obstacle> {
    let agent = &rows.agent.spec;
    let (url, code) = match agent.connection() {
        Some(ConnectionType::HttpWebhook) => (agent.http_webhook.as_ref(), ErrorCode::HttpWebhookFailed),
        _ => (agent.p12_base_url.as_ref(), ErrorCode::Missing(Platform::P12, Setting::Configuration)),
    };
    let url = url.and_then(|url| Url::parse(url).ok());
    url.map(Line::Server).ok_or_else(|| Obstacle::new(code, "The agent's address is no URL"))
}

/// Returns the server of an agent on a platform that is written to.
fn platform_server(rows: &CallRows, agent: &PlatformAgent) -> Result<Line, Obstacle> {
    let url = agent.protocol.target().and_then(|target| Url::parse(&format!("https://{target}")).ok());
    let platform = rows.agent.spec.connection().and_then(known_platform);
    let code = platform.map_or(ErrorCode::NoConnectionType, |(_, platform, ..)| {
        ErrorCode::Platform(*platform, PlatformFault::SessionSetupFailed)
    });
    url.map(Line::Server).ok_or_else(|| Obstacle::new(code, "The address of the agent's platform is no URL"))
}

/// Returns the line of a call that is ready to be placed.
pub fn line_of(destination: &Destination) -> Result<Line, Obstacle> {
    let invalid = |why: String| Obstacle::new(ErrorCode::BridgePreStartFailed, why);
    if let Destination::Sip(dial) = destination {
        let address = Address::parse(&dial.target).map_err(|fault| invalid(fault.to_string()))?;
        return Ok(Line::Sip(Box::new(address)));
    }
    let url = destination.server_url().ok_or_else(|| invalid("the agent calls by itself".to_owned()))?;
    Url::parse(url).map(Line::Server).map_err(|error| invalid(error.to_string()))
}
