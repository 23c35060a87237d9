//! The host that a call goes to: what rate limits are counted by.

use crate::planner::request::{ArgumentValue, Request};
use crate::settings::tool_model::ToolModel;

/// The host whose limit a request counts against: that of its `url`, else the one that the value model names.
pub fn host_for(request: &Request, model: &ToolModel) -> Option<String> {
    let of_url = match &request.argument.value {
        ArgumentValue::Text(text) if request.argument.name == "url" => host_of(text),
        _ => None,
    };
    of_url.or_else(|| model.rate_limit_host.as_ref().map(|host| host.to_ascii_lowercase()))
}

/// The host of a URL in lower case, without user and port; IPv6 addresses keep their brackets. `None` without a scheme
/// or a host.
pub fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let host = match place.find(']').filter(|_| place.starts_with('[')) {
        Some(end) => &place[..=end],
        None => place.rsplit_once(':').map_or(place, |(host, _)| host),
    };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}
