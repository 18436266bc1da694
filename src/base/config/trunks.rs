//! `[sip.trunks.NAME]`: providers that carry calls to telephone numbers, and limits of dialled numbers.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use ringer_media::codec::Codec;
use ringer_sip::Transport;
use ringer_syntax::phone::{e164, e164_prefix};
use serde::{Serialize, Serializer};

use super::codecs::{codec_names, read_codecs};
use super::source::environment_name;
use super::srtp::Encryption;
use super::{Secret, Source};

/// Section of the trunks.
const TRUNKS: &str = "sip.trunks";
/// Codecs that a trunk is offered, in order.
const CODECS: [Codec; 4] = [Codec::Pcmu, Codec::Pcma, Codec::G722, Codec::Opus];
/// Most characters of a trunk's name, which is a label of metrics.
const NAME_CHARS: usize = 64;
/// Most characters of a display name.
const DISPLAY_CHARS: usize = 100;
/// Fields of the limits of dialled numbers.
pub(super) const DIAL_FIELDS: [&str; 5] =
    ["allowed_prefixes", "denied_prefixes", "max_calls", "max_cps", "max_minutes_per_day"];
/// Further fields of a trunk.
const FIELDS: [&str; 17] = [
    "host",
    "port",
    "transport",
    "outbound_proxy",
    "username",
    "password",
    "from_domain",
    "display_name",
    "identity",
    "register",
    "expires_s",
    "keepalive_s",
    "codecs",
    "srtp",
    "numbers",
    "carries",
    "default",
];

/// A provider that carries calls to telephone numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trunk {
    /// Host of the Request-URI: a name, an IPv4 address or an IPv6 address in brackets.
    pub host: String,
    /// Port of the Request-URI; `None`: by DNS, or the transport's default.
    pub port: Option<u16>,
    /// Transport of the signalling.
    #[serde(serialize_with = "transport_name")]
    pub transport: Transport,
    /// Place that requests are sent to instead of the host.
    pub outbound_proxy: Option<HostPort>,
    /// User name for digest authentication, also of registrations.
    pub username: Option<String>,
    /// Password that belongs to `username`.
    pub password: Option<Secret>,
    /// Host of the From and P-Asserted-Identity header fields; `None`: the trunk's host.
    pub from_domain: Option<String>,
    /// Display name of the From header field.
    pub display_name: Option<String>,
    /// Header fields that assert the caller's identity.
    pub identity: Identity,
    /// True if the trunk is registered with, for calls that come in.
    pub register: bool,
    /// Interval of registrations in seconds.
    pub expires_s: u32,
    /// Interval of OPTIONS requests in seconds; 0: none.
    pub keepalive_s: u32,
    /// Codecs that are offered, in order of preference.
    #[serde(serialize_with = "codec_names")]
    pub codecs: Vec<Codec>,
    /// Use of secure RTP; `None`: as `sip.srtp` says.
    pub srtp: Encryption,
    /// Numbers of the trunk in E.164, from which and to which calls are made.
    pub numbers: Vec<String>,
    /// Beginnings of further numbers of the trunk, as `+1415555`: an organization calls from one once it has added it.
    pub carries: Vec<String>,
    /// True for the trunk of calls whose caller has no number of any trunk.
    pub default: bool,
    /// Limits of dialled numbers. Without `allowed_prefixes` the trunk dials nothing.
    #[serde(flatten)]
    pub limits: DialLimits,
}

/// Limits of dialled numbers, of a trunk or of an organization. A limit that is not given does not apply, except a
/// trunk's `allowed_prefixes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DialLimits {
    /// Prefixes of numbers that may be dialled, as `+49`; a lone `+` is every number.
    pub allowed_prefixes: Option<Vec<String>>,
    /// Prefixes of numbers that may not be dialled, whatever is allowed.
    pub denied_prefixes: Vec<String>,
    /// Most calls at the same time.
    pub max_calls: Option<u32>,
    /// Most calls begun in one second; below 1: one call in 1 / `max_cps` seconds.
    pub max_cps: Option<f64>,
    /// Most minutes of conversation in a day (UTC).
    pub max_minutes_per_day: Option<u32>,
}

/// Header fields that assert the caller's identity (RFC 3325).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Identity {
    /// No header field besides From.
    #[default]
    Off,
    /// P-Asserted-Identity with the caller's number.
    Asserted,
    /// P-Asserted-Identity, and `Privacy: id`, which asks that it is not shown to the called side.
    Private,
}

/// A host with or without a port, written `HOST` or `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// A name, an IPv4 address or an IPv6 address in brackets.
    pub host: String,
    /// The port, where one is named.
    pub port: Option<u16>,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl Serialize for HostPort {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl HostPort {
    fn parse(text: &str) -> Option<HostPort> {
        if let Some(host) = parse_host(text) {
            return Some(HostPort { host, port: None });
        }
        let (host, port) = text.rsplit_once(':')?;
        // An IPv6 address with a port stands in brackets.
        let host = parse_host(host).filter(|_| host.starts_with('[') || !host.contains(':'))?;
        Some(HostPort { host, port: Some(port.parse().ok().filter(|port| *port > 0)?) })
    }
}

impl Trunk {
    fn new(srtp: Encryption) -> Trunk {
        Trunk {
            host: String::new(),
            port: None,
            transport: Transport::Udp,
            outbound_proxy: None,
            username: None,
            password: None,
            from_domain: None,
            display_name: None,
            identity: Identity::Off,
            register: false,
            expires_s: 3600,
            keepalive_s: 30,
            codecs: CODECS.to_vec(),
            srtp,
            numbers: Vec::new(),
            carries: Vec::new(),
            default: false,
            limits: DialLimits::default(),
        }
    }

    /// Returns the address of a number behind this trunk, as it stands in a Request-URI.
    pub fn uri(&self, number: &str) -> String {
        format!("sip:{number}@{}{}", self.place(), self.transport_parameter())
    }

    /// Returns the address of the trunk as a URI without a user.
    pub fn host_uri(&self) -> String {
        format!("sip:{}{}", self.place(), self.transport_parameter())
    }

    /// Returns the address of the outbound proxy as a URI without a user; `None` where there is none, or where it is
    /// the host itself.
    pub fn proxy_uri(&self) -> Option<String> {
        let proxy = self.outbound_proxy.as_ref().filter(|proxy| **proxy != self.place());
        proxy.map(|proxy| format!("sip:{proxy}{}", self.transport_parameter()))
    }

    fn place(&self) -> HostPort {
        HostPort { host: self.host.clone(), port: self.port }
    }

    /// True if a number is listed as one of the trunk's.
    pub fn lists(&self, number: &str) -> bool {
        self.numbers.iter().any(|own| own == number)
    }

    /// Returns the host of the caller's address.
    pub fn domain(&self) -> &str {
        self.from_domain.as_deref().unwrap_or(&self.host)
    }

    fn transport_parameter(&self) -> &'static str {
        match self.transport {
            Transport::Udp => "",
            Transport::Tcp => ";transport=tcp",
            Transport::Tls => ";transport=tls",
        }
    }

    fn from_settings(name: &str, srtp: Encryption, from: &mut Source) -> Trunk {
        let mut trunk = Trunk::new(srtp);
        let key = |field: &str| format!("{TRUNKS}.{name}.{field}");
        let host = |text: &str| parse_host(text);
        from.read_parsed(&key("host"), HOST, host, &mut trunk.host);
        from.maybe_whole(&key("port"), 1..=65_535, &mut trunk.port);
        from.read_parsed(&key("transport"), "one of udp, tcp, tls", Transport::from_name, &mut trunk.transport);
        let proxy = |text: &str| Some(Some(HostPort::parse(text)?));
        from.read_parsed(&key("outbound_proxy"), "a host with or without a port", proxy, &mut trunk.outbound_proxy);
        from.maybe_text(&key("username"), &mut trunk.username);
        from.secret(&key("password"), &mut trunk.password);
        from.read_parsed(&key("from_domain"), HOST, |text| Some(Some(parse_host(text)?)), &mut trunk.from_domain);
        let allowed = "a text of at most 100 characters on one line";
        from.read_parsed(&key("display_name"), allowed, parse_display, &mut trunk.display_name);
        from.read_parsed(&key("identity"), "one of off, asserted, private", parse_identity, &mut trunk.identity);
        from.boolean(&key("register"), &mut trunk.register);
        from.whole(&key("expires_s"), 60..=86_400, &mut trunk.expires_s);
        from.whole(&key("keepalive_s"), 0..=3600, &mut trunk.keepalive_s);
        read_codecs(&key("codecs"), &mut trunk.codecs, from);
        from.read_parsed(&key("srtp"), Encryption::WORDS, Encryption::parse, &mut trunk.srtp);
        read_all(&key("numbers"), "a number in E.164, like +14155550100", e164, &mut trunk.numbers, from);
        let beginning = "the beginning of a number in E.164, like +1415555";
        read_all(&key("carries"), beginning, carried_prefix, &mut trunk.carries, from);
        from.boolean(&key("default"), &mut trunk.default);
        trunk.limits = DialLimits::from_settings(&format!("{TRUNKS}.{name}"), from);
        for (is_missing, needed, by) in [
            (trunk.host.is_empty(), "host", "the trunk"),
            (trunk.password.is_some() && trunk.username.is_none(), "username", "its password"),
            (trunk.register && trunk.username.is_none(), "username", "its registration"),
        ] {
            if is_missing && !from.has_problem_of(&key(needed)) {
                from.refuse(format!("{} is missing: {by} needs it", key(needed)));
            }
        }
        trunk
    }
}

impl DialLimits {
    pub(super) fn from_settings(section: &str, from: &mut Source) -> DialLimits {
        let mut limits = DialLimits::default();
        let key = |field: &str| format!("{section}.{field}");
        let allowed = "the beginning of a number in E.164, like +49";
        let mut prefixes = None;
        from.maybe_list(&key("allowed_prefixes"), &mut prefixes);
        limits.allowed_prefixes =
            prefixes.map(|texts| parse_all(&key("allowed_prefixes"), allowed, e164_prefix, &texts, from));
        read_all(&key("denied_prefixes"), allowed, e164_prefix, &mut limits.denied_prefixes, from);
        from.maybe_whole(&key("max_calls"), 1..=1_000_000, &mut limits.max_calls);
        from.maybe_number(&key("max_cps"), 0.01..=10_000.0, &mut limits.max_cps);
        from.maybe_whole(&key("max_minutes_per_day"), 1..=100_000_000, &mut limits.max_minutes_per_day);
        limits
    }
}

/// Reads every trunk, and refuses trunks that contradict each other. `srtp`: the setting of a trunk that has none.
pub(super) fn read_trunks(from: &mut Source, srtp: Encryption) -> BTreeMap<String, Trunk> {
    let mut trunks = BTreeMap::new();
    let mut variables = BTreeMap::<String, String>::new();
    for name in from.names_below(TRUNKS, &[&FIELDS[..], &DIAL_FIELDS[..]].concat()) {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > NAME_CHARS || !name.chars().all(fits) {
            let allowed = "letters, digits, - and _, at most 64 of them";
            from.refuse(format!("{TRUNKS}.{name}: the name of a trunk must be of {allowed}"));
        }
        if let Some(other) = variables.insert(environment_name(&name), name.clone()) {
            let why = "their variables of the environment have the same names";
            from.refuse(format!("{TRUNKS}.{name} and {TRUNKS}.{other} cannot be told apart: {why}"));
        }
        let trunk = Trunk::from_settings(&name, srtp, from);
        trunks.insert(name, trunk);
    }
    let mut owners = BTreeMap::<&str, &str>::new();
    let mut beginnings = BTreeMap::<&str, &str>::new();
    let mut default = None::<&str>;
    for (name, trunk) in &trunks {
        for prefix in &trunk.carries {
            if let Some(other) = beginnings.insert(prefix, name) {
                from.refuse(format!("{TRUNKS}.{name}.carries: {prefix} is in {TRUNKS}.{other}.carries already"));
            }
        }
        for number in &trunk.numbers {
            if let Some(other) = owners.insert(number, name) {
                from.refuse(format!("{TRUNKS}.{name}.numbers: {number} is in {TRUNKS}.{other}.numbers already"));
            }
        }
        if let Some(other) = default.filter(|_| trunk.default) {
            from.refuse(format!("{TRUNKS}.{name}.default: {TRUNKS}.{other} is the default already"));
        }
        default = default.or(trunk.default.then_some(name));
    }
    trunks
}

/// Returns the trunk that carries a number, with its name: the one that lists it, else the one with the longest
/// beginning of it.
pub fn carrier<'t>(trunks: &'t BTreeMap<String, Trunk>, number: &str) -> Option<(&'t str, &'t Trunk)> {
    let named = |(name, trunk): (&'t String, &'t Trunk)| (name.as_str(), trunk);
    if let Some(found) = trunks.iter().find(|(_, trunk)| trunk.lists(number)) {
        return Some(named(found));
    }
    let length = |trunk: &Trunk| {
        let fits = trunk.carries.iter().filter(|prefix| number.starts_with(prefix.as_str()));
        fits.map(String::len).max()
    };
    let carrying = trunks.iter().filter_map(|found| Some((length(found.1)?, found)));
    carrying.max_by_key(|(length, _)| *length).map(|(_, found)| named(found))
}

/// Reads a beginning of numbers. A lone `+` is every number, which no trunk has.
fn carried_prefix(text: &str) -> Option<String> {
    e164_prefix(text).filter(|prefix| prefix.len() > 1)
}

/// Returns warnings about trunks that are set up but dial nothing.
pub(super) fn silent_trunks(trunks: &BTreeMap<String, Trunk>) -> Vec<String> {
    let dials = |trunk: &Trunk| trunk.limits.allowed_prefixes.as_ref().is_some_and(|prefixes| !prefixes.is_empty());
    let silent = trunks.iter().filter(|(_, trunk)| !dials(trunk));
    let describe = |name: &String| format!("{TRUNKS}.{name}.allowed_prefixes is empty: the trunk dials no number");
    silent.map(|(name, _)| describe(name)).collect()
}

/// Description of a valid host, for messages.
const HOST: &str = "the name or address of a host, without a port";

/// Returns a host as it stands in a URI, in lower case.
fn parse_host(text: &str) -> Option<String> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<Ipv6Addr>() {
        return Some(format!("[{address}]"));
    }
    if text.parse::<Ipv4Addr>().is_ok() {
        return Some(text.to_owned());
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    // The last label of a name is never a number (RFC 3696 2), so 1.2.3 is a mistyped address.
    let is_name = name.rsplit('.').next().is_some_and(|last| last.bytes().any(|byte| !byte.is_ascii_digit()));
    (name.len() <= 253 && is_name && name.split('.').all(is_label)).then(|| name.to_ascii_lowercase())
}

fn parse_display(text: &str) -> Option<Option<String>> {
    let fits = text.chars().count() <= DISPLAY_CHARS && !text.chars().any(char::is_control);
    fits.then(|| Some(text.to_owned()).filter(|text| !text.is_empty()))
}

fn parse_identity(text: &str) -> Option<Identity> {
    match text {
        "off" => Some(Identity::Off),
        "asserted" => Some(Identity::Asserted),
        "private" => Some(Identity::Private),
        _ => None,
    }
}

/// Reads a list of texts that `parse` understands; `allowed` describes such texts.
fn read_all(
    key: &str,
    allowed: &str,
    parse: impl Fn(&str) -> Option<String>,
    into: &mut Vec<String>,
    from: &mut Source,
) {
    let mut texts = Vec::new();
    from.list(key, &mut texts);
    *into = parse_all(key, allowed, parse, &texts, from);
}

fn parse_all(
    key: &str,
    allowed: &str,
    parse: impl Fn(&str) -> Option<String>,
    texts: &[String],
    from: &mut Source,
) -> Vec<String> {
    let mut parsed = Vec::new();
    for text in texts {
        match parse(text) {
            Some(text) if parsed.contains(&text) => {}
            Some(text) => parsed.push(text),
            None => from.refuse(format!("{key}: {text:?} is not allowed: it must be {allowed}")),
        }
    }
    parsed
}

fn transport_name<S: Serializer>(transport: &Transport, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&transport.name().to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
