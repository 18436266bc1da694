//! The look-up of a host name that media of one call go to, beside everything else that happens in it.

use futures_util::future::BoxFuture;

use crate::provider::guard::Guard;
use crate::transport::sip::names::Found;

/// A look-up that is under way, or none.
#[derive(Default)]
pub(super) struct Looking(Option<BoxFuture<'static, Found>>);

impl Looking {
    /// Begins to look `host` up, as far as `guard` lets media go there; for as long as the guard's limit at most. What was looked up
    /// before is given up.
    pub fn begin(&mut self, host: String, guard: Guard) {
        self.0 = Some(Box::pin(async move { guard.address(&host).await }));
    }

    /// True while something is looked up.
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Waits for the result; for ever where nothing is looked up.
    pub async fn finish(&mut self) -> Found {
        let Some(looking) = &mut self.0 else { return std::future::pending().await };
        let found = looking.await;
        self.0 = None;
        found
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::net::IpAddr;
    use std::time::Duration;

    use super::*;
    use crate::provider::guard::Blocked;

    #[tokio::test(start_paused = true)]
    async fn a_name_is_looked_up_as_far_as_the_guard_goes_and_for_a_limited_time() {
        let check = async |host: &str, expect: Found| {
            let guard = Guard::by(|address| address != IpAddr::from([192, 0, 2, 9])).with_names(|name| {
                Box::pin(async move {
                    match name.as_str() {
                        "media.example" => Ok(vec![IpAddr::from([192, 0, 2, 7])]),
                        "inside.example" => Ok(vec![IpAddr::from([192, 0, 2, 9])]),
                        "slow.example" => pending().await,
                        _ => Ok(Vec::new()),
                    }
                })
            });
            let mut looking = Looking::default();
            looking.begin(host.to_owned(), guard);
            // The clock goes on as soon as nothing else can.
            let found = tokio::time::timeout(Duration::from_secs(60), looking.finish()).await;
            assert_eq!(found, Ok(expect), "{host}");
            let again = tokio::time::timeout(Duration::from_secs(60), looking.finish()).await;
            assert!(again.is_err(), "{host}: one result for one look-up");
        };
        check("media.example", Ok([192, 0, 2, 7].into())).await;
        check("inside.example", Err(Blocked::NotAllowed)).await;
        check("nobody.example", Err(Blocked::NoAddress)).await;
        check("slow.example", Err(Blocked::NoAddress)).await;
    }
}
