//! Route that reads the YAML of a suite into resources, for a form that imports one.

use ringer_base::error::{Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, post, with_tag};
use crate::suite_reader::SuiteOut;

/// A suite that is to be read.
#[derive(Deserialize, JsonSchema)]
struct SuiteIn {
    /// YAML of the suite, without `!include` and without variables.
    #[schemars(length(min = 1, max = 1_048_576))]
    yaml: String,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let read = post("/v1/suites/read", read_suite).read_only().repeatable().of("Organization");
    let endpoints =
        vec![read.about("Read the YAML of a suite into the bodies of an agent, a simulation and its callers")];
    with_tag("Simulations", "Simulation", endpoints).collect()
}

async fn read_suite(ctx: Ctx, request: In<Nothing, Nothing, SuiteIn>) -> Result<SuiteOut> {
    let none = || Error::Unavailable("Suites are not read by this process".into());
    let read = ctx.suites.ok_or_else(none)?;
    let yaml = request.body.yaml;
    let done = tokio::task::spawn_blocking(move || read(&yaml)).await.map_err(Error::internal)?;
    done.map_err(Error::Refused)
}
