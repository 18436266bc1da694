//! The server of an assistant: what it offers, and the reading of its requests. It asks the API for everything, with
//! the assistant's key, so that nobody may do more here than there.

use axum::Router;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig,
};
use rmcp::{ErrorData, ServerHandler};

use super::asking::Fault;
use super::session::{AssistantRequest, Call};
use super::{resources, tools};
use crate::cli::run::client::Client;

/// Way to the API.
#[derive(Clone)]
pub(super) enum Access {
    /// One client for all requests.
    One(Client),
    /// Routes of this process, with the key of each request.
    ByKey(Router),
}

/// Server that assistants ask.
#[derive(Clone)]
pub(super) struct Assistant {
    access: Access,
    allow_trunks: bool,
}

const INSTRUCTIONS: &str = "\
Ringer calls voice agents as a simulated customer and measures what they do. To test an agent: read the schema of suites \
(suite_schema, list_levers), write a suite in YAML, run it (run_suite), then read why calls failed (read_suite, \
read_result). For one call without a suite: call_agent. Calls take as long as conversations do: run_suite and call_agent \
answer after wait_s seconds with what is known, and read_suite or read_result tell the rest later.";

impl Assistant {
    /// Returns a server with this access to the API.
    pub(super) fn new(access: Access, allow_trunks: bool) -> Assistant {
        Assistant { access, allow_trunks }
    }

    /// Returns the client for a request.
    fn client(&self, context: &AssistantRequest) -> Result<Client, ErrorData> {
        let made = match &self.access {
            Access::One(client) => return Ok(client.clone()),
            Access::ByKey(routes) => {
                let key = context.extensions.get::<Parts>().map(|parts| key_of(&parts.headers)).unwrap_or_default();
                Client::inside(routes.clone(), key)
            }
        };
        made.map_err(|why| ErrorData::internal_error(why, None))
    }
}

impl ServerHandler for Assistant {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_resources().enable_tools().build();
        let own = Implementation::new("ringer", env!("CARGO_PKG_VERSION")).with_title("Ringer");
        ServerConfig::new(capabilities).with_server_info(own).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: AssistantRequest,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: AssistantRequest,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = self.client(&context)?;
        let answers = request.input_responses.unwrap_or_default();
        let call = Call { client, allow_trunks: self.allow_trunks, context: &context, answers };
        let arguments = request.arguments.unwrap_or_default();
        match tools::perform(&call, &request.name, arguments).await {
            Ok(value) => Ok(CallToolResult::structured(value).into()),
            Err(Fault::Told(why)) => Ok(CallToolResult::error(vec![ContentBlock::text(why)]).into()),
            Err(Fault::Asks(question)) => Ok((*question).into()),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: AssistantRequest,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::constants()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: AssistantRequest,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: AssistantRequest,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let client = self.client(&context)?;
        resources::contents_of(&client, &request.uri).await.map(ReadResourceResponse::from)
    }
}

/// Returns the key of a request, as the API reads it; empty where there is none.
fn key_of(headers: &HeaderMap) -> &str {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = || {
        let (scheme, token) = text(AUTHORIZATION.as_str())?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    };
    text("x-api-key").or_else(bearer).unwrap_or_default()
}
