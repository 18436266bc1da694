//! Trunks as they are set up: which one carries a call and whom it calls from, and which one an address leads to. Pure
//! but for the look-up of hosts.

use std::net::IpAddr;

use ringer_base::config::{Trunk, carrier};
use ringer_base::guard::Guard;
use ringer_model::error_code::ErrorCode;
use ringer_sip::uri::Uri;
use ringer_transport::sip::names::Resolver;

use crate::conversation::obstacle::Obstacle;
use crate::conversation::user_part::Trunks;

/// A port with which a host is looked up by its addresses alone.
const ANY_PORT: u16 = 5060;

/// Number that a call is made from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnNumber<'a> {
    /// The number in E.164.
    pub number: &'a str,
    /// True if the caller's organization has added it.
    pub is_added: bool,
}

/// Returns the trunk of a call with its name: the one that carries the caller's number, else the default; the only
/// trunk is the default.
///
/// # Errors
/// `SIP_NOT_CONFIGURED` where there is none, `UNUSABLE_CALLER_ID` for a number that is not the trunk's, or where it has
/// none.
pub(crate) fn choose<'a>(trunks: &'a Trunks, caller: Option<OwnNumber<'_>>) -> Result<(&'a str, &'a Trunk), Obstacle> {
    let unusable = |message: String| Obstacle { code: ErrorCode::UnusableCallerId, message };
    if let Some(OwnNumber { number, is_added }) = caller
        && let Some((name, trunk)) = carrier(trunks, number)
    {
        return match trunk.lists(number) || is_added {
            true => Ok((name, trunk)),
            false => Err(unusable(why_not_added(number, name))),
        };
    }
    let Some((name, trunk)) = default_of(trunks) else {
        let why = if trunks.is_empty() { "none is set up" } else { "none is the default" };
        let message = format!("Phone numbers need a SIP trunk, and {why}");
        return Err(Obstacle { code: ErrorCode::SipNotConfigured, message });
    };
    match caller {
        Some(OwnNumber { number, .. }) => {
            Err(unusable(format!("{number} is no number of a trunk, and cannot be called from")))
        }
        None if trunk.numbers.is_empty() && trunk.carries.is_empty() => {
            Err(unusable(format!("The trunk {name} has no number to call from")))
        }
        None => Ok((name, trunk)),
    }
}

/// Returns why a number cannot be called from that a trunk carries and that was not added.
pub(super) fn why_not_added(number: &str, trunk: &str) -> String {
    format!("{number} is a number of sip.trunks.{trunk}.carries: it has to be added before it is called from")
}

/// Returns the default trunk, or the only one.
fn default_of(trunks: &Trunks) -> Option<(&String, &Trunk)> {
    let only = trunks.iter().next().filter(|_| trunks.len() == 1);
    trunks.iter().find(|(_, trunk)| trunk.default).or(only)
}

/// Returns the name of the default trunk, or of the only one.
pub(crate) fn default_name(trunks: &Trunks) -> Option<&str> {
    default_of(trunks).map(|(name, _)| name.as_str())
}

/// Returns the trunk whose host, or outbound proxy, is `host`, or is reached at one of the addresses `found`.
pub(crate) async fn trunk_at<'a>(
    trunks: &'a Trunks,
    host: &str,
    found: &[IpAddr],
    names: &Resolver,
) -> Option<&'a str> {
    let plain = |host: &str| host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    let address = |host: &str| plain(host).parse::<IpAddr>().ok();
    let found: Vec<IpAddr> = found.iter().copied().chain(address(host)).map(|found| found.to_canonical()).collect();
    let hosts = trunks.iter().flat_map(|(name, trunk)| {
        let proxy = trunk.outbound_proxy.as_ref().map(|proxy| proxy.host.as_str());
        let own = (trunk.host.as_str(), Some(trunk.uri("0")));
        let proxy = proxy.map(|proxy| (proxy, trunk.proxy_uri()));
        proxy.into_iter().chain([own]).map(move |(host, uri)| (name.as_str(), host, uri))
    });
    let hosts: Vec<(&str, &str, Option<String>)> = hosts.collect();
    let is_found = |own: IpAddr| found.contains(&own.to_canonical());
    let is_written = |own: &str| plain(own) == plain(host) || address(own).is_some_and(is_found);
    if let Some((name, ..)) = hosts.iter().find(|(_, own, _)| is_written(own)) {
        return Some(name);
    }
    let guard = Guard::new(true);
    let named = hosts.into_iter().filter(|(_, own, _)| address(own).is_none() && !found.is_empty());
    for (name, own, uri) in named {
        // By its servers, and by its addresses: those are dialled where a port is named.
        for uri in uri.into_iter().chain([format!("sip:{own}:{ANY_PORT}")]) {
            let Ok(uri) = Uri::parse(&uri) else { continue };
            let hops = names.hops(&uri, &guard).await.unwrap_or_default();
            if hops.iter().any(|hop| is_found(hop.address.ip())) {
                return Some(name);
            }
        }
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use ringer_base::config::Config;
    use ringer_transport::sip::names::testing::NameServer;

    use super::*;

    /// Trunks of a settings file.
    pub(crate) fn trunks(file: &str) -> Trunks {
        let read = Config::from_texts(Some((Path::new("r.toml"), file)), &BTreeMap::new(), &[], 3200);
        read.expect("good settings").sip.trunks
    }

    /// Settings with two trunks, the second of which is the default.
    pub(crate) const TWO: &str = "
        [sip.trunks.near]
        host = 'sip.near.example'
        numbers = ['+15550001111', '+493012345']
        [sip.trunks.far]
        host = '192.0.2.7'
        outbound_proxy = 'Proxy.far.example:5070'
        numbers = ['+15550002222', '+4412345678', '+3912345678']
        default = true
    ";

    #[test]
    fn the_owner_of_the_callers_number_carries_the_call_else_the_default() {
        let two = trunks(TWO);
        let without_default = trunks(&TWO.replace("default = true", ""));
        let one = trunks("[sip.trunks.only]\nhost = 'h'\nnumbers = ['+15550001111']");
        let bare = trunks("[sip.trunks.bare]\nhost = 'h'");
        let blocks = trunks(&format!("{TWO}\n[sip.trunks.block]\nhost = 'h'\ncarries = ['+155500033']"));
        let lone = trunks("[sip.trunks.lone]\nhost = 'h'\ncarries = ['+1555']");
        for (trunks, caller, expect) in [
            (&two, Some("+15550001111"), Ok("near")),
            (&blocks, Some("+15550002222"), Ok("far")),
            (&blocks, Some("+15550003333"), Ok("block")),
            (&blocks, Some("+15550003399"), Err("UNUSABLE_CALLER_ID")),
            (&blocks, Some("+15550009999"), Err("UNUSABLE_CALLER_ID")),
            (&lone, None, Ok("lone")),
            (&two, Some("+15550002222"), Ok("far")),
            (&two, None, Ok("far")),
            (&two, Some("+15550009999"), Err("UNUSABLE_CALLER_ID")),
            (&without_default, Some("+15550001111"), Ok("near")),
            (&without_default, None, Err("SIP_NOT_CONFIGURED")),
            (&without_default, Some("+15550009999"), Err("SIP_NOT_CONFIGURED")),
            (&one, None, Ok("only")),
            (&one, Some("+15550002222"), Err("UNUSABLE_CALLER_ID")),
            (&bare, None, Err("UNUSABLE_CALLER_ID")),
            (&Trunks::new(), Some("+15550001111"), Err("SIP_NOT_CONFIGURED")),
        ] {
            let caller = caller.map(|number| OwnNumber { number, is_added: number == "+15550003333" });
            let chosen = choose(trunks, caller).map(|(name, _)| name).map_err(|obstacle| obstacle.code);
            assert_eq!(chosen, expect.map_err(ErrorCode::from), "{caller:?}");
        }
    }

    #[tokio::test]
    async fn a_trunk_is_known_by_its_hosts() {
        let two = trunks(&format!("{TWO}\n[sip.trunks.local]\nhost = 'localhost'"));
        let address = |text: &str| text.parse::<IpAddr>().ok();
        let names = Resolver::default();
        for (host, found, expect) in [
            ("SIP.near.example.", None, Some("near")),
            ("192.0.2.7", None, Some("far")),
            ("[::ffff:192.0.2.7]", None, Some("far")),
            ("elsewhere.example", address("192.0.2.7"), Some("far")),
            ("proxy.far.example", None, Some("far")),
            ("127.0.0.1", address("127.0.0.1"), Some("local")),
            ("192.0.2.8", None, None),
            ("elsewhere.example", address("192.0.2.8"), None),
        ] {
            assert_eq!(trunk_at(&two, host, found.as_slice(), &names).await, expect, "{host} {found:?}");
        }
    }

    #[tokio::test]
    async fn a_trunk_is_known_by_every_server_of_its_name() {
        let zone = "
            _sip._udp.near.example. SRV 1 1 5070 one.near.example.
            _sip._udp.near.example. SRV 2 1 5070 two.near.example.
            one.near.example. A 192.0.2.1
            two.near.example. A 192.0.2.2
            near.example. A 192.0.2.3";
        let server = NameServer::start(zone).await;
        let names = Resolver::new(&[server.address]);
        let near = trunks("[sip.trunks.near]\nhost = 'near.example'\nnumbers = ['+15550001111']");
        for (found, expect) in [
            (&[[192, 0, 2, 1]][..], Some("near")),
            (&[[192, 0, 2, 2]], Some("near")),
            (&[[192, 0, 2, 3]], Some("near")),
            (&[[192, 0, 2, 9], [192, 0, 2, 2]], Some("near")),
            (&[[192, 0, 2, 9]], None),
            (&[], None),
        ] {
            let found: Vec<IpAddr> = found.iter().copied().map(IpAddr::from).collect();
            assert_eq!(trunk_at(&near, "elsewhere.example", &found, &names).await, expect, "{found:?}");
        }
    }
}
