//! Rules of where the other side may send a call on to, by redirects (3xx) and by transfers (REFER, RFC 3515), and the
//! state of a transfer that is followed.

use ringer_base::config::{Refer, Sip, Targets};
use ringer_media::call::RemoteEnd;
use ringer_media::leg::MediaParams;
use ringer_sip::Hop;
use ringer_sip::uri::{Scheme, Uri};

/// Most transfers that are followed in one call: two sides could send it to and fro without end.
pub(super) const MOST_TRANSFERS: u32 = 5;
/// Longest value of a header field that a transfer brings along, in bytes.
const VALUE_BYTES: usize = 1024;

/// Rules of where other sides may send a call on to; by default nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwarding {
    /// Transfers are followed, or refused.
    pub refer: Refer,
    /// Targets to which transfers are followed.
    pub refer_targets: Targets,
    /// Targets to which redirects are followed.
    pub redirects: Targets,
}

impl From<&Sip> for Forwarding {
    fn from(sip: &Sip) -> Forwarding {
        let (refer_targets, redirects) = (sip.refer_targets.clone(), sip.redirects.clone());
        Forwarding { refer: sip.refer, refer_targets, redirects }
    }
}

/// True if `targets` has the host of an address that another side named, or its number at `own`, the host of the call.
/// Every redirect and transfer is decided here; the guard of addresses comes on top.
pub(super) fn may_go(targets: &Targets, uri: &Uri, own: Option<&str>) -> bool {
    targets.allow(&uri.host, uri.user.as_deref(), own)
}

/// Returns the address at which a target is reached: a number without a host (`tel:`) at that of the call, by its
/// transport (RFC 3261 19.1.6). `None` where that is not known.
pub(super) fn reachable(target: &Uri, call: Option<&Uri>) -> Option<Uri> {
    if target.scheme != Scheme::Tel {
        return Some(target.clone());
    }
    let call = call?;
    let mut params = call.params.clone();
    params.0.retain(|(name, _)| name.eq_ignore_ascii_case("transport"));
    params.set("user", Some("phone".to_owned()));
    let number = target.user.clone()?;
    Some(Uri { user: Some(number), password: None, headers: String::new(), params, ..call.clone() })
}

/// A target of a transfer to call.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetCall {
    /// The address that is called.
    pub uri: Uri,
    /// Hops to it in the order in which they are tried, at least one.
    pub hops: Vec<Hop>,
    /// Header fields that the transfer brings along: Referred-By (RFC 3892), Replaces (RFC 3891).
    pub headers: Vec<(String, String)>,
    /// Media in use, of which the target is offered the codec and the encryption: the call goes on with them.
    pub media: MediaParams,
}

/// Transfers of one call.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    pub forwarding: Forwarding,
    /// Number of those that were followed.
    pub followed: u32,
    pub open: Option<Open>,
    /// Address that was called, or that the call came from; it is read where the other side sends the call on, which
    /// few do.
    pub called: Box<str>,
}

/// A transfer that has no outcome yet.
#[derive(Debug)]
pub(super) struct Open {
    /// The target as it is told.
    pub to: String,
    pub uri: Uri,
    pub headers: Vec<(String, String)>,
    pub step: Step,
}

/// Progress of a transfer without an outcome.
#[derive(Debug)]
pub(super) enum Step {
    /// The host of the target is being looked up.
    LookedUp,
    /// The Call was asked; these hops lead to the target.
    Asked(Vec<Hop>),
    /// The target is being called; the end of the first dialog, when that is over.
    Calling { left: Option<RemoteEnd> },
}

/// Returns the address that Refer-To names, and the value of a Replaces field that it asks for. Other fields are left
/// out (RFC 3261 19.1.5).
///
/// # Errors
/// For a person: it is no address, or asks for another request than INVITE.
pub(super) fn read_target(refer_to: &str) -> Result<(Uri, Option<String>), String> {
    let mut uri = Uri::parse(refer_to).map_err(|_| "it is no SIP address".to_owned())?;
    if uri.params.get("method").is_some_and(|method| !method.eq_ignore_ascii_case("INVITE")) {
        return Err("it asks for another request than INVITE".to_owned());
    }
    uri.params.0.retain(|(name, _)| !name.eq_ignore_ascii_case("method"));
    let headers = std::mem::take(&mut uri.headers);
    let mut fields = headers.split('&').filter_map(|field| field.split_once('='));
    let replaces = fields.find(|(name, _)| name.eq_ignore_ascii_case("Replaces")).map(|(_, value)| unescape(value));
    match replaces {
        Some(value) if value.is_empty() || value.len() > VALUE_BYTES || value.chars().any(char::is_control) => {
            Err("its Replaces cannot be read".to_owned())
        }
        replaces => Ok((uri, replaces)),
    }
}

/// Returns the address for people, without a password and header fields.
pub(super) fn for_people(uri: &Uri) -> String {
    Uri { password: None, headers: String::new(), ..uri.clone() }.to_string()
}

/// Returns one line of at most [`VALUE_BYTES`] bytes.
pub(super) fn plain(value: &str) -> String {
    let mut line: String = value.chars().filter(|c| !c.is_control()).collect();
    line.truncate(line.floor_char_boundary(VALUE_BYTES));
    line
}

/// Undoes escapes (RFC 3261 19.1.2); bytes that are no text are replaced.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| behind.get(..2)).flatten();
        let byte = escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
