//! Agents that have a telephone number: the trunk by which they are dialled, and what the call shows of its caller.

use std::net::IpAddr;

use ringer_base::config::{Identity, Trunk, carrier};
use ringer_base::error::Result;
use ringer_base::guard::Guard;
use ringer_engine::{SipDial, TrunkTerms};
use ringer_model::agent::ConnectionType;
use ringer_model::error_code::ErrorCode;
use ringer_model::result::ResultDoc;
use ringer_sip::Hop;
use ringer_store::{Row, Session};
use ringer_syntax::phone::e164;
use ringer_transport::sip::address::{Address, AddressFault};
use serde_json::json;

use super::dial::{CallerNumber, Outgoing, outgoing_at};
use super::trunks::{OwnNumber, choose, trunk_at};
use super::{CallRows, Obstacle, Placements, PreparedCall};
use crate::{NotDone, Settings};

/// Returns the dial of the agent's number, without its caller, and what has to be admitted first.
pub(super) async fn dial(rows: &CallRows, settings: &Settings) -> std::result::Result<(SipDial, Outgoing), Obstacle> {
    let invalid = |message: &str| Obstacle::new(ErrorCode::InvalidPhoneNumber, message);
    let own = rows.caller_number().map(|number| OwnNumber { number, is_added: rows.has_added_number });
    let (name, trunk) = choose(&settings.trunks, own)?;
    let number = rows.overrides.phone_number.as_ref().or(rows.agent.spec.phone_number.as_ref());
    let number = number.ok_or_else(|| invalid("The agent has no phone_number"))?;
    let number = e164(number).ok_or_else(|| invalid("phone_number is no number in E.164"))?;
    let caller = rows.caller_number().map_or(CallerNumber::Any, |own| CallerNumber::Own(own.to_owned()));
    // Whoever sets the engine up chooses where its trunks are.
    let guard = Guard::new(true);
    let mut dial = SipDial {
        target: trunk.uri(&number),
        trunk: Some(Box::new(TrunkTerms { proxy: trunk.proxy_uri(), ..TrunkTerms::default() })),
        username: trunk.username.clone(),
        password: trunk.password.clone(),
        codecs: trunk.codecs.clone(),
        srtp: Some(trunk.srtp),
        guard: Some(guard.clone()),
        ..SipDial::default()
    };
    let located = match Address::parse(&dial.target).and_then(|address| dial.next_hop(&address)) {
        Ok(next) => next.hops(&settings.names, &guard).await,
        Err(fault) => Err(fault),
    };
    dial.hops = located.map_err(|fault| unreachable(name, &fault))?;
    Ok((dial, rows.with_times(Outgoing { trunk: name.to_owned(), number, caller, ..Outgoing::default() })))
}

/// Returns the number to admit before a SIP address is dialled that leads to a trunk. A number that is written as an
/// address leaves by the trunk as any other.
pub(super) async fn behind(rows: &CallRows, target: &str, hops: &[Hop], settings: &Settings) -> Option<Outgoing> {
    if settings.trunks.is_empty() {
        return None;
    }
    let address = Address::parse(target).ok()?;
    let found: Vec<IpAddr> = hops.iter().map(|hop| hop.address.ip()).collect();
    let trunk = trunk_at(&settings.trunks, &address.uri().host, &found, &settings.names).await?;
    outgoing_at(trunk, address.uri().user.as_deref().unwrap_or_default()).map(|outgoing| rows.with_times(outgoing))
}

pub(super) fn unreachable(trunk: &str, fault: &AddressFault) -> Obstacle {
    let code = match fault {
        AddressFault::NotSpoken(_) => ErrorCode::ConnectionNotSupported,
        AddressFault::Malformed(_)
        | AddressFault::NotAllowed(_)
        | AddressFault::NotFound(_)
        | AddressFault::NotAnswered(_) => ErrorCode::SipDialFailed,
    };
    Obstacle::new(code, format!("The trunk {trunk} cannot be used: {}", fault.kind()))
}

/// Puts the caller's number into a dial: From, and what the trunk asserts of it (RFC 3325 9.1).
fn show_caller(dial: &mut SipDial, trunk: &Trunk, caller: &str) {
    let terms = dial.trunk.get_or_insert_default();
    terms.from_user = Some(caller.to_owned());
    terms.from_host = Some(trunk.domain().to_owned());
    terms.from_display = trunk.display_name.clone();
    if trunk.identity == Identity::Off {
        return;
    }
    let display = trunk.display_name.as_deref().map(|name| format!("{} ", quote(name))).unwrap_or_default();
    let asserted = format!("{display}<sip:{caller}@{}>", trunk.domain());
    dial.headers.push(("P-Asserted-Identity".to_owned(), asserted));
    if trunk.identity == Identity::Private {
        dial.headers.push(("Privacy".to_owned(), "id".to_owned()));
    }
}

/// Returns a text as a quoted string (RFC 3261 25.1).
pub(super) fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl Placements {
    /// Admits the number of a call within a transaction, and lets the call show its caller's number.
    ///
    /// # Errors
    /// The limit that refuses the number, or a fault of the store.
    pub(super) async fn admit_dial(
        &self,
        db: &mut Session,
        row: &Row<ResultDoc>,
        prepared: &mut PreparedCall,
    ) -> Result<(), NotDone<Obstacle>> {
        let Some(outgoing) = prepared.dial.clone() else { return Ok(()) };
        let caller = self.admit_queued(db, row, &outgoing).await?;
        self.show_admitted(prepared, &outgoing, caller);
        Ok(())
    }

    /// Writes the number that was admitted into a call.
    pub(super) fn show_admitted(&self, prepared: &mut PreparedCall, outgoing: &Outgoing, caller: Option<String>) {
        prepared.notes.insert("trunk".to_owned(), json!(outgoing.trunk));
        let trunk = self.settings.trunks.get(&outgoing.trunk);
        if let (Some(dial), Some(trunk), Some(caller)) = (prepared.placement.destination.sip(), trunk, caller) {
            prepared.notes.insert("caller_number".to_owned(), json!(caller));
            show_caller(dial, trunk, &caller);
        }
    }
}

impl CallRows {
    /// Returns the kind of connection that reaches the agent. An agent without any kind is of the kind that the run
    /// names.
    pub(super) fn telephony(&self) -> Option<ConnectionType> {
        self.agent.spec.connection().or_else(|| self.overrides.connection())
    }

    /// Returns the number that the Digital Human calls from, where it has one.
    fn caller_number(&self) -> Option<&str> {
        let of_step = self.step.as_ref().and_then(|step| step.phone_number.as_deref());
        of_step.or(self.human.phone_number.as_deref()).filter(|number| !number.is_empty())
    }

    /// Returns the number that a called SIP address is shown: the Digital Human's. A trunk is shown only numbers that
    /// are its own.
    pub(super) fn shown_number(&self, behind: Option<&Outgoing>, settings: &Settings) -> Option<String> {
        let number = e164(self.caller_number()?)?;
        let is_own = behind.is_none_or(|outgoing| {
            let found = carrier(&settings.trunks, &number).filter(|(name, _)| *name == outgoing.trunk);
            found.is_some_and(|(_, trunk)| trunk.lists(&number) || self.has_added_number)
        });
        is_own.then_some(number)
    }

    /// Returns a dial with the times of this call.
    fn with_times(&self, outgoing: Outgoing) -> Outgoing {
        let limits = self.limits();
        let lasts_ms = i64::from(limits.max_duration_ms.unwrap_or(u32::MAX));
        Outgoing { rings_ms: i64::from(limits.ringing_ms), lasts_ms, ..outgoing }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringer_base::config::{CODECS, Encryption};
    use serde_json::Value;

    use super::super::tests::rows_of;
    use super::*;
    use crate::placement::route::destination;
    use crate::placement::trunks::tests::trunks;

    const FILE: &str = "
        [sip]
        srtp = 'optional'
        [sip.trunks.near]
        host = '127.0.0.1'
        port = 5099
        numbers = ['+15550001111', '+15550001112']
        username = 'u'
        password = 'p'
        from_domain = 'desk.example'
        display_name = 'Front \"desk\"'
        identity = 'private'
        default = true
        [sip.trunks.far]
        host = 'sip.far.invalid'
        outbound_proxy = '127.0.0.2:5070'
        numbers = ['+15550002222']
        codecs = ['PCMA']
        srtp = 'required'
        [sip.trunks.deep]
        host = '127.0.0.3'
        transport = 'tcp'
        numbers = ['+15550003333']
        [sip.trunks.safe]
        host = 'localhost'
        transport = 'tls'
        numbers = ['+15550005555']
        [sip.trunks.lost]
        host = 'host.invalid'
        numbers = ['+15550004444']
    ";

    fn settings() -> Settings {
        Settings { trunks: Arc::new(trunks(FILE)), ..Settings::new("unused") }
    }

    async fn dial_of(
        agent: Value,
        human: Value,
        run: Value,
    ) -> std::result::Result<(SipDial, Option<Outgoing>), Obstacle> {
        let (mut destination, outgoing) = destination(&rows_of(agent, human, run), &CODECS, &settings()).await?;
        Ok((destination.sip().expect("it dials").clone(), outgoing))
    }

    #[tokio::test]
    async fn a_number_is_dialled_through_the_trunk_of_its_caller() {
        let near = "sip:+15550009999@127.0.0.1:5099";
        let far = "sip:+15550009999@sip.far.invalid";
        let any = CallerNumber::Any;
        let own = |number: &str| CallerNumber::Own(number.to_owned());
        let number = "+1 (555) 000-9999";
        for (human, run, target, at, trunk, caller) in [
            (json!({}), json!({}), near, "UDP 127.0.0.1:5099", "near", any),
            (
                json!({"phone_number": "+15550001112"}),
                json!({}),
                near,
                "UDP 127.0.0.1:5099",
                "near",
                own("+15550001112"),
            ),
            (json!({"phone_number": "+15550002222"}), json!({}), far, "UDP 127.0.0.2:5070", "far", own("+15550002222")),
            (
                json!({}),
                json!({"phone_number": "+15550008888"}),
                "sip:+15550008888@127.0.0.1:5099",
                "UDP 127.0.0.1:5099",
                "near",
                CallerNumber::Any,
            ),
        ] {
            let (dial, outgoing) =
                dial_of(json!({ "phone_number": number }), human.clone(), run).await.expect("it can be dialled");
            let outgoing = outgoing.expect("a number leaves");
            assert_eq!(dial.target, target, "{human}");
            assert_eq!(dial.hops.iter().map(ToString::to_string).collect::<Vec<_>>(), [at], "{human}");
            assert_eq!((outgoing.trunk.as_str(), &outgoing.caller), (trunk, &caller), "{human}");
            assert_eq!((outgoing.rings_ms, outgoing.lasts_ms), (300_000, 600_000), "{human}");
            assert!(dial.headers.is_empty(), "{:?}", dial.headers);
            let is_near = trunk == "near";
            assert_eq!(dial.username.is_some(), is_near, "{human}");
            assert_eq!(dial.srtp, Some(if is_near { Encryption::Optional } else { Encryption::Required }));
            let names: Vec<&str> = dial.codecs.iter().map(|codec| codec.name()).collect();
            assert_eq!(names, if is_near { vec!["PCMU", "PCMA", "G722", "OPUS"] } else { vec!["PCMA"] });
        }
    }

    #[tokio::test]
    async fn a_trunk_is_dialled_over_its_transport() {
        for (caller, target, at, name) in [
            ("+15550003333", "sip:+15550009999@127.0.0.3;transport=tcp", "TCP 127.0.0.3:5060", None),
            ("+15550005555", "sip:+15550009999@localhost;transport=tls", "TLS 127.0.0.1:5061", Some("localhost")),
        ] {
            let human = json!({ "phone_number": caller });
            let dialled = dial_of(json!({ "phone_number": "+15550009999" }), human, json!({})).await;
            let (dial, _) = dialled.expect("it can be dialled");
            let hop = dial.hops.first().expect("a hop");
            assert_eq!((dial.target.as_str(), hop.to_string().as_str()), (target, at));
            assert_eq!(hop.server_name.as_deref(), name, "{caller}");
        }
    }

    #[tokio::test]
    async fn a_number_that_cannot_be_dialled_says_why() {
        for (agent, human, expect) in [
            (json!({"connection_type": "PHONE"}), json!({}), "INVALID_PHONE_NUMBER"),
            (json!({"phone_number": "+1800FLOWERS"}), json!({}), "INVALID_PHONE_NUMBER"),
            (json!({"phone_number": "5550009999"}), json!({}), "INVALID_PHONE_NUMBER"),
            (json!({"phone_number": "+15550009999"}), json!({"phone_number": "+15550007777"}), "UNUSABLE_CALLER_ID"),
            (json!({"phone_number": "+15550009999"}), json!({"phone_number": "+15550004444"}), "SIP_DIAL_FAILED"),
        ] {
            let refused = dial_of(agent.clone(), human.clone(), json!({})).await.expect_err("it cannot be dialled");
            assert_eq!(refused.code.as_str(), expect, "{agent} {human}: {}", refused.message);
        }
    }

    #[tokio::test]
    async fn a_sip_address_at_a_trunk_is_a_number_that_leaves() {
        for (uri, expect) in [
            ("sip:+15550009999@127.0.0.1:5099", Some(("near", "+15550009999"))),
            ("sip:%2B15550009999@127.0.0.2", Some(("far", "+15550009999"))),
            ("sip:9005550000@127.0.0.1", Some(("near", ""))),
            ("sip:desk@127.0.0.1:5099", None),
            ("sip:+15550009999@127.0.0.9", None),
        ] {
            let (dial, outgoing) = dial_of(json!({ "sip_uri": uri }), json!({}), json!({})).await.expect("it resolves");
            let found = outgoing.as_ref().map(|outgoing| (outgoing.trunk.as_str(), outgoing.number.as_str()));
            assert_eq!(found, expect, "{uri}");
            assert!(outgoing.is_none_or(|outgoing| outgoing.caller == CallerNumber::Absent), "{uri}");
            assert_eq!((dial.target.as_str(), dial.trunk, dial.headers.len()), (uri, None, 2));
        }
    }

    #[tokio::test]
    async fn a_sip_address_is_shown_the_number_of_the_caller() {
        for (uri, number, expect) in [
            ("sip:desk@127.0.0.9", Some("+15550007777"), Some("+15550007777")),
            ("sip:desk@127.0.0.9", None, None),
            // At a trunk, only numbers of the trunk.
            ("sip:+15550009999@127.0.0.1:5099", Some("+15550001111"), Some("+15550001111")),
            ("sip:+15550009999@127.0.0.1:5099", Some("+15550007777"), None),
        ] {
            let human = json!({ "phone_number": number });
            let (dial, _) = dial_of(json!({ "sip_uri": uri }), human, json!({})).await.expect("it resolves");
            assert_eq!(dial.from_user.as_deref(), expect, "{uri} {number:?}");
        }
    }

    #[test]
    fn a_run_names_the_connection_of_an_agent_that_has_none() {
        for (run, expect) in [
            (json!({}), None),
            (json!({ "sip_uri": "sip:bob@127.0.0.1" }), Some(ConnectionType::Sip)),
            (json!({ "websocket_url": "ws://127.0.0.1/" }), Some(ConnectionType::WebSocket)),
            (json!({ "P1_agent_name": "" }), Some(ConnectionType::P1)),
            (json!({ "P2_agent_name": "desk" }), Some(ConnectionType::P2)),
            (json!({ "P4_agent_id": "a" }), Some(ConnectionType::P4)),
            (json!({ "phone_number": "+15550001111" }), Some(ConnectionType::Phone)),
        ] {
            assert_eq!(rows_of(json!({}), json!({}), run.clone()).telephony(), expect, "{run}");
            let named = rows_of(json!({ "sip_uri": "sip:bob@127.0.0.1" }), json!({}), run.clone());
            assert_eq!(named.telephony(), Some(ConnectionType::Sip), "{run}");
        }
    }

    #[test]
    fn the_caller_is_shown_as_the_trunk_says() {
        let trunks = trunks(FILE);
        for (name, identity, expect) in [
            (
                "near",
                Identity::Private,
                &[("P-Asserted-Identity", r#""Front \"desk\"" <sip:+15550001111@desk.example>"#), ("Privacy", "id")][..],
            ),
            ("far", Identity::Asserted, &[("P-Asserted-Identity", "<sip:+15550001111@sip.far.invalid>")]),
            ("far", Identity::Off, &[]),
        ] {
            let trunk = Trunk { identity, ..trunks[name].clone() };
            let mut dial = SipDial::default();
            show_caller(&mut dial, &trunk, "+15550001111");
            let headers: Vec<(&str, &str)> =
                dial.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(headers, expect);
            let host = if name == "near" { "desk.example" } else { "sip.far.invalid" };
            let terms = dial.trunk.expect("terms");
            assert_eq!((terms.from_user.as_deref(), terms.from_host.as_deref()), (Some("+15550001111"), Some(host)));
        }
    }
}
