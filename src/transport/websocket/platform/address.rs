//! Addresses of adapters: the host, and the schemes that are allowed.

use url::Url;

/// Splits an address behind its host, or behind the one place that may stand for scheme and host.
pub(super) fn split_base<'u>(platform: &str, url: &'u str) -> (&'u str, &'u str) {
    let whole = format!("{{{{agent.{platform}_base_url}}}}");
    if url.starts_with(&whole) {
        return url.split_at(whole.len());
    }
    let from = url.find("://").map_or(0, |at| at + 3);
    let end = url[from..].find(['/', '?', '#']).map_or(url.len(), |at| from + at);
    url.split_at(end)
}

/// Checks that an address is encrypted, or on this machine.
pub(super) fn check_scheme(url: &str, [plain, safe]: [&str; 2]) -> Result<(), String> {
    let parsed = Url::parse(url).map_err(|_| "is no address".to_owned())?;
    let is_here = match parsed.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => return Err("has no host".to_owned()),
    };
    match parsed.scheme() {
        scheme if scheme == safe || (scheme == plain && is_here) => Ok(()),
        scheme if scheme == plain => Err(format!("must begin with {safe}:// unless it is on this machine")),
        _ => Err(format!("must begin with {safe}://")),
    }
}
