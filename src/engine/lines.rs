//! Lines to the trunks of the settings: what is registered there, and as whom.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ringer_base::config::{Sources, Trunk};
use ringer_sip::Uri;
use ringer_sip::auth::Credentials;
use ringer_sip::registration::{Account, Places};
use ringer_transport::sip::registration::{LineBoard, LineTerms};

use super::Engine;

/// User of lines without a user of their own.
const USER: &str = "ringer";

impl Engine {
    /// Keeps lines to these trunks from now on. `instance` is the URN of this installation (RFC 5626 4.1).
    pub async fn keep_lines(&self, trunks: &BTreeMap<String, Trunk>, instance: &str) {
        let config = &self.services.config;
        let terms = trunks.iter().zip(1..).filter_map(|((name, trunk), reg_id)| {
            let account = account(trunk, instance, reg_id, config.advertise.is_some())?;
            Some(LineTerms { name: name.clone(), account })
        });
        let (terms, clock) = (terms.collect(), self.services.clock.clone());
        self.services.sip.keep_lines(terms, config.names.clone(), clock).await;
    }

    /// Keeps the registrations at these trunks from now on, and takes those at others back.
    pub async fn register_lines(&self, trunks: BTreeSet<String>) {
        self.services.sip.register_lines(trunks).await;
    }

    /// Limits what strangers send from now on. None are the hosts in `allowed`, those of the lines, and those of calls.
    pub async fn limit_strangers(&self, allowed: &Sources) {
        self.services.sip.limit_strangers(allowed.clone()).await;
    }

    /// Returns the standing of the lines.
    pub fn lines(&self) -> &LineBoard {
        self.services.sip.board()
    }

    /// Returns the name of the trunk that has this host, as far as its hosts are known.
    pub fn trunk_at(&self, host: IpAddr) -> Option<String> {
        self.lines().line_at(host)
    }
}

/// Returns the account at a trunk. Its addresses of this side are set by the sockets.
fn account(trunk: &Trunk, instance: &str, reg_id: u32, is_advertised: bool) -> Option<Account> {
    let password = trunk.password.as_ref().map(|password| password.expose().to_owned());
    let credentials = trunk.username.clone().zip(password);
    Some(Account {
        host: Uri::parse(&trunk.host_uri()).ok()?,
        proxy: trunk.proxy_uri().and_then(|proxy| Uri::parse(&proxy).ok()),
        user: trunk.username.clone().unwrap_or_else(|| USER.to_owned()),
        domain: trunk.domain().to_owned(),
        credentials: credentials.map(|(username, password)| Credentials { username, password }),
        expires_s: trunk.register.then_some(trunk.expires_s),
        keepalive_s: trunk.keepalive_s,
        instance: instance.to_owned(),
        reg_id,
        local: Places { udp: ([0, 0, 0, 0], 0).into(), tcp: None, tls: None },
        is_advertised,
        user_agent: concat!("Ringer/", env!("CARGO_PKG_VERSION")).to_owned(),
    })
}
