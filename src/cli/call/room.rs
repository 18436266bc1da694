//! Calls in media rooms from the shell: whose token is used, and which room it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::clock::{Clock, random_seed};
use crate::config::Secret;
use crate::provider::guard::Guard;
use crate::provider::post::Poster;
use crate::provider::tls::Roots;
use crate::transport::room::access::{RoomKey, RoomServer, Visit, join_token};
use crate::transport::room::{Credentials, RoomTarget, RoomTerms};

/// Name of the caller in a room.
const IDENTITY: &str = "ringer";

/// Name of an agent that this program plays itself.
pub const FAR_AGENT: &str = "ringer-far-side";

/// Time of the requests to a room server.
const PATIENCE: Duration = Duration::from_secs(10);

/// Flags of calls in media rooms.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RoomFlags {
    /// Name of the room to join [default: a new room, which is removed after the call]
    #[arg(long, value_name = "NAME")]
    pub room: Option<String>,
    /// API key of the room server; better given by the environment, as are its secret and tokens
    #[arg(long, env = "RINGER_ROOM_KEY", hide_env_values = true)]
    pub room_key: Option<String>,
    /// Secret of the API key
    #[arg(long, env = "RINGER_ROOM_SECRET", hide_env_values = true)]
    pub room_secret: Option<String>,
    /// Token that lets the caller join, instead of key and secret
    #[arg(long, env = "RINGER_ROOM_TOKEN", hide_env_values = true)]
    pub room_token: Option<String>,
    /// Agent that is dispatched to a room that is new [default: the room server's default]
    #[arg(long, value_name = "NAME")]
    pub agent_name: Option<String>,
    /// Metadata of the room and of the agent's job, a JSON object
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub metadata: Option<Map<String, Value>>,
}

/// Reads a JSON object.
fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("it is no JSON object: {error}"))
}

/// A room that is created for a call.
pub struct NewRoom {
    server: RoomServer,
    visit: Visit,
    /// True while the room may be there: the server was asked for it, and has not refused.
    may_exist: AtomicBool,
}

impl NewRoom {
    /// Asks the server for the room, with its agent.
    ///
    /// # Errors
    /// The request that failed.
    pub async fn create(&self) -> Result<(), String> {
        self.may_exist.store(true, Ordering::Relaxed);
        self.server.create(&self.visit).await.map_err(|fault| {
            self.may_exist.store(fault.is_unsure(), Ordering::Relaxed);
            fault.text(Credentials::Variables)
        })
    }

    /// Returns the name of the room.
    pub fn room(&self) -> &str {
        &self.visit.room
    }

    /// True once the server was asked for the room, unless it has refused.
    pub fn may_exist(&self) -> bool {
        self.may_exist.load(Ordering::Relaxed)
    }

    /// Removes the room, whoever is still there; does nothing where there can be none.
    ///
    /// # Errors
    /// The request that failed.
    pub async fn remove(&self) -> Result<(), String> {
        if !self.may_exist() {
            return Ok(());
        }
        let name = &self.visit.room;
        self.server.remove(name).await.map_err(|fault| format!("the room {name} was not removed: {fault}"))
    }
}

/// A server at which rooms are created.
pub struct Rooms {
    server: RoomServer,
    key: RoomKey,
    server_url: String,
    flags: RoomFlags,
}

impl Rooms {
    /// Returns a room of this name that can be created, and the way into it.
    pub fn new_room(&self, name: String) -> (RoomTarget, NewRoom) {
        let visit = self.flags.visit(name);
        let token = join_token(&self.key, &visit, Clock::Real.now_ms());
        let new_room = NewRoom { server: self.server.clone(), visit, may_exist: AtomicBool::new(false) };
        (self.flags.target(self.server_url.clone(), token), new_room)
    }

    /// Returns the way into a room for its agent.
    pub fn as_agent(&self, room: &str) -> RoomTarget {
        let visit = Visit { identity: FAR_AGENT.to_owned(), is_agent: true, ..self.flags.visit(room.to_owned()) };
        let token = join_token(&self.key, &visit, Clock::Real.now_ms());
        RoomTarget { agent_name: None, ..self.flags.target(self.server_url.clone(), token) }
    }

    /// Returns the key of the server.
    pub fn key(&self) -> &RoomKey {
        &self.key
    }
}

/// The way into a room.
#[derive(Debug, PartialEq)]
pub enum Way<'a> {
    /// A token that is ready.
    Token(&'a str),
    /// The key of the room server, by which tokens are signed.
    Key(RoomKey),
}

impl RoomFlags {
    /// Checks the flags of a call; `in_room`: the call is in a media room.
    ///
    /// # Errors
    /// The flag that has no effect, or what is missing.
    pub fn check(&self, in_room: bool) -> Result<(), String> {
        // What comes from the environment may stand there for other calls.
        let own = [
            ("--room", self.room.is_some()),
            ("--agent-name", self.agent_name.is_some()),
            ("--metadata", self.metadata.is_some()),
        ];
        match own.iter().find(|(_, given)| *given) {
            Some((flag, _)) if !in_room => Err(format!("{flag} is for room: addresses")),
            _ if !in_room => Ok(()),
            flag => match (self.way()?, flag) {
                (Way::Token(_), Some((flag, _))) => {
                    Err(format!("{flag} needs the API key of the room server: a token says all of it itself"))
                }
                _ => Ok(()),
            },
        }
    }

    /// Returns the facts by which a failure of a call says what to check.
    pub fn terms(&self) -> RoomTerms {
        let credentials = match self.way() {
            Ok(Way::Key(_)) => Credentials::Variables,
            Ok(Way::Token(_)) => Credentials::Token,
            Err(_) => Credentials::Unknown,
        };
        RoomTerms { agent_name: self.agent_name.clone().unwrap_or_default(), credentials, ..RoomTerms::default() }
    }

    /// Returns the way that the credentials give.
    ///
    /// # Errors
    /// Names what is missing, or says that there are two ways.
    pub fn way(&self) -> Result<Way<'_>, String> {
        let given = |text: &'_ Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
        let is_set = [&self.room_key, &self.room_secret, &self.room_token].map(given);
        match (is_set, &self.room_token) {
            ([_, _, true], Some(token)) if !is_set[0] || !is_set[1] => Ok(Way::Token(token.trim())),
            ([true, true, false], _) => Ok(Way::Key(RoomKey {
                key: self.room_key.clone().unwrap_or_default(),
                secret: Secret::new(self.room_secret.clone().unwrap_or_default()),
            })),
            ([true, true, true], _) => {
                Err("both a token and a key of the room server are set: give one of them".to_owned())
            }
            ([true, false, false], _) => {
                Err("the secret of the room server's key is missing: RINGER_ROOM_SECRET".to_owned())
            }
            ([false, true, false], _) => Err("the room server's key is missing: RINGER_ROOM_KEY".to_owned()),
            _ => Err("a room needs RINGER_ROOM_KEY and RINGER_ROOM_SECRET, or RINGER_ROOM_TOKEN".to_owned()),
        }
    }

    /// Returns the way into the room of a call with its token, and the room that is to be created where none is named.
    /// Nothing is asked yet.
    ///
    /// # Errors
    /// Names what is missing.
    pub fn plan(&self, server_url: &str, roots: &Roots) -> Result<(RoomTarget, Option<NewRoom>), String> {
        let target = |token| self.target(server_url.to_owned(), token);
        match (self.way()?, &self.room) {
            (Way::Token(token), _) => Ok((target(Secret::new(token.to_owned())), None)),
            (Way::Key(key), Some(room)) => {
                Ok((target(join_token(&key, &self.visit(room.clone()), Clock::Real.now_ms())), None))
            }
            (Way::Key(_), None) => {
                let room = format!("svc-call-{:08x}", random_seed() as u32);
                let (target, new_room) = self.rooms(server_url, roots)?.new_room(room);
                Ok((target, Some(new_room)))
            }
        }
    }

    /// Returns the server at which rooms are created, whose certificate may be of `roots`.
    ///
    /// # Errors
    /// Names what is missing: its key, or a part of it.
    pub fn rooms(&self, server_url: &str, roots: &Roots) -> Result<Rooms, String> {
        let Way::Key(key) = self.way()? else {
            return Err("new rooms need RINGER_ROOM_KEY and RINGER_ROOM_SECRET: a token is for one room".to_owned());
        };
        let poster = Arc::new(Poster::new(Guard::by(|_| true).trusting(roots), PATIENCE));
        let server =
            RoomServer::new(server_url, key.clone(), poster, Clock::Real).map_err(|why| format!("room: {why}"))?;
        Ok(Rooms { server, key, server_url: server_url.to_owned(), flags: self.clone() })
    }

    /// Returns the way into a room with this token.
    fn target(&self, server_url: String, token: Secret) -> RoomTarget {
        RoomTarget { server_url, token, tool_topic: None, agent_name: self.agent_name.clone() }
    }

    fn visit(&self, room: String) -> Visit {
        let metadata = Value::Object(self.metadata.clone().unwrap_or_default()).to_string();
        Visit {
            room,
            identity: IDENTITY.to_owned(),
            name: IDENTITY.to_owned(),
            job_metadata: metadata.clone(),
            metadata,
            attributes: Map::new(),
            is_agent: false,
            agent_name: self.agent_name.clone().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(key: &str, secret: &str, token: &str) -> RoomFlags {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        RoomFlags { room_key: given(key), room_secret: given(secret), room_token: given(token), ..RoomFlags::default() }
    }

    #[test]
    fn what_is_missing_is_named() {
        let key = RoomKey { key: "k".into(), secret: Secret::new("s".into()) };
        for (given, expect) in [
            (flags("k", "s", ""), Ok(Way::Key(key))),
            (flags("", "", " t "), Ok(Way::Token("t"))),
            (flags("k", "", "t"), Ok(Way::Token("t"))),
            (flags("k", "s", "t"), Err("give one of them")),
            (flags("k", " ", ""), Err("RINGER_ROOM_SECRET")),
            (flags("", "s", ""), Err("RINGER_ROOM_KEY")),
            (flags("", "", ""), Err("or RINGER_ROOM_TOKEN")),
        ] {
            match (given.way(), expect) {
                (Ok(found), Ok(expect)) => assert_eq!(found, expect),
                (Err(why), Err(part)) => assert!(why.ends_with(part), "{why}"),
                (found, expect) => panic!("{found:?} {expect:?}"),
            }
        }
    }

    #[test]
    fn flags_without_effect_are_refused() {
        let named = |given: RoomFlags| RoomFlags { room: Some("r".into()), ..given };
        let with_metadata = |given: RoomFlags| RoomFlags { metadata: Some(Map::new()), ..given };
        for (given, in_room, expect) in [
            (flags("k", "s", ""), false, None),
            (named(flags("k", "s", "")), false, Some("--room is for room: addresses")),
            (with_metadata(flags("", "", "")), false, Some("--metadata is for room: addresses")),
            (named(flags("k", "s", "")), true, None),
            (named(flags("", "", "t")), true, Some("--room needs the API key")),
            (flags("", "", "t"), true, None),
            (flags("", "", ""), true, Some("a room needs RINGER_ROOM_KEY")),
        ] {
            let found = given.check(in_room).err();
            let starts = found.as_deref().zip(expect).is_some_and(|(why, start)| why.starts_with(start));
            assert!(starts || found.is_none() && expect.is_none(), "{found:?} {expect:?}");
        }
        assert!(object("[1]").is_err() && object("{\"a\":1}").is_ok());
    }

    #[tokio::test]
    async fn a_room_that_is_named_needs_no_request() {
        let given = RoomFlags { room: Some("r".into()), ..flags("k", "s", "") };
        let (target, new) = given.plan("ws://127.0.0.1:1", &Roots::default()).expect("a token is signed here");
        assert_eq!((target.server_url.as_str(), new.is_none()), ("ws://127.0.0.1:1", true));
        assert_eq!(target.token.expose().split('.').count(), 3);
        let (_, new) = flags("k", "s", "").plan("ws://127.0.0.1:1", &Roots::default()).expect("a token is signed here");
        let new = new.expect("a new room");
        assert!(!new.may_exist() && new.remove().await.is_ok(), "nothing was asked");
        let why = new.create().await.expect_err("nobody is there");
        assert!(why.starts_with("CreateRoom at the room server 127.0.0.1:1: no connection"), "{why}");
    }
}
