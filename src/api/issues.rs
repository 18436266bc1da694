//! Routes of issues.

use axum::http::Method;
use ringer_base::error::Result;
use ringer_model::issue::{IssueDetail, IssueQuery, IssueRecord, TriageSpec};
use ringer_model::patch::Patch;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, endpoint, get, with_tag};

#[derive(Deserialize, JsonSchema)]
struct IssuePath {
    issue_id: Uuid,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        get("/v1/issues", list)
            .deprecate()
            .of("Organization")
            .about("List issues, the one with the newest failure first"),
        get("/v1/issues/{issue_id}", read_one).about("Get an issue with its newest failures"),
        endpoint(Method::PATCH, "/v1/issues/{issue_id}", triage).about("Update state, urgency or assignee of an issue"),
    ];
    with_tag("Issues", "Issue", endpoints).collect()
}

async fn list(ctx: Ctx, request: In<Nothing, IssueQuery>) -> Result<Vec<IssueRecord>> {
    ctx.service.watching().issues(&ctx.caller, &request.query).await
}

async fn read_one(ctx: Ctx, request: In<IssuePath>) -> Result<IssueDetail> {
    ctx.service.watching().issue(&ctx.caller, request.path.issue_id).await
}

async fn triage(ctx: Ctx, request: In<IssuePath, Nothing, Patch<TriageSpec>>) -> Result<IssueRecord> {
    ctx.service.watching().triage_issue(&ctx.caller, request.path.issue_id, request.body.into_given()).await
}
