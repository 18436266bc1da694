//! The look-up of a host name that media of one call go to, beside everything else that happens in it.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::BoxFuture;
use ringer_base::guard::{Blocked, Guard};
use ringer_transport::sip::media_names::Found;

/// Time in which a name has to be found.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the first address of `host` that `guard` lets media go to: the written one, or one of its name.
///
/// # Errors
/// [`Blocked::NotAllowed`] where it has only others, [`Blocked::NoAddress`] where none at all is found in 5 s.
pub(super) async fn find(host: &str, guard: &Guard) -> Found {
    let found = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => {
            let found = tokio::time::timeout(PATIENCE, guard.names(host)).await;
            found.unwrap_or(Ok(Vec::new())).map_err(|_| Blocked::NoAddress)?
        }
    };
    if found.is_empty() {
        return Err(Blocked::NoAddress);
    }
    found.into_iter().find(|address| guard.allows(*address)).ok_or(Blocked::NotAllowed)
}

/// A look-up that is under way, or none.
#[derive(Default)]
pub(super) struct Looking(Option<BoxFuture<'static, Found>>);

impl Looking {
    /// Begins to look `host` up, as far as `guard` lets media go there, for 5 s at most. What was looked up before is
    /// given up.
    pub(crate) fn begin(&mut self, host: String, guard: Guard) {
        self.0 = Some(Box::pin(async move { find(&host, &guard).await }));
    }

    /// True while something is looked up.
    pub(crate) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Waits for the result; for ever where nothing is looked up.
    pub(crate) async fn finish(&mut self) -> Found {
        let Some(looking) = &mut self.0 else { return std::future::pending().await };
        let found = looking.await;
        self.0 = None;
        found
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_name_is_looked_up_as_far_as_the_guard_goes_once() {
        let check = async |host: &str, expect: Found| {
            let guard = Guard::by(|address| address != IpAddr::from([192, 0, 2, 9])).with_names(|name| {
                Box::pin(async move {
                    match name.as_str() {
                        "media.example" => Ok(vec![IpAddr::from([192, 0, 2, 7])]),
                        "inside.example" => Ok(vec![IpAddr::from([192, 0, 2, 9])]),
                        _ => Ok(Vec::new()),
                    }
                })
            });
            let mut looking = Looking::default();
            looking.begin(host.to_owned(), guard);
            assert!(looking.is_open());
            assert_eq!(looking.finish().await, expect, "{host}");
            assert!(!looking.is_open() && looking.finish().now_or_never().is_none(), "{host}: one result for each");
        };
        check("media.example", Ok([192, 0, 2, 7].into())).await;
        check("inside.example", Err(Blocked::NotAllowed)).await;
        check("nobody.example", Err(Blocked::NoAddress)).await;
        check("[2001:db8::7]", Ok("2001:db8::7".parse().expect("an address"))).await;
        check("192.0.2.9", Err(Blocked::NotAllowed)).await;
    }
}
