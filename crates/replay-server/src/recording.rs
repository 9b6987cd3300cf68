//! The recorded responses, in memory and ready to be sent.

use crate::Failure;
use crate::headers::{BadHeader, Fields};
use crate::matching::{Index, Target};
use crate::ranges::ContentRange;
use bytes::Bytes;
use http::StatusCode;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;
use wirepaint_run::Response;

/// Longest think time that is accepted, nanoseconds.
const LONGEST_THINK_NS: u64 = 3_600_000_000_000;

/// One recorded response.
pub struct Recorded {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub fields: Rc<Fields>,
    /// Which part of the whole the body is, for a 206 whose header agrees with its body.
    pub part: Option<ContentRange>,
    /// The body as it goes on the wire, after content-encoding.
    pub body: Bytes,
    /// Nanoseconds between the request's last byte and the response's first.
    pub think_ns: u64,
}

/// All recorded responses and where to find them.
pub struct Recording {
    /// In order of recording.
    pub responses: Vec<Recorded>,
    /// By method and address.
    pub index: Index,
}

impl Recording {
    /// Reads every body (each file once) and checks every response; `path` is the run description,
    /// for errors.
    pub fn load(path: &Path, responses: &[Response]) -> Result<Recording, Failure> {
        let now = SystemTime::now();
        let mut bodies: HashMap<&PathBuf, Bytes> = HashMap::new();
        let mut recording =
            Recording { responses: Vec::with_capacity(responses.len()), index: Index::default() };
        for (i, response) in responses.iter().enumerate() {
            let refuse = |key: &str, found: String, accepted: &'static str| Failure::Value {
                path: path.to_owned(),
                key: format!("server.responses[{i}].{key}"),
                found,
                accepted,
            };
            let target = Target::parse(&response.url).ok_or_else(|| {
                refuse("url", format!("{:?}", response.url), "an absolute http or https address")
            })?;
            if http::Method::from_bytes(response.method.as_bytes()).is_err() {
                return Err(refuse("method", format!("{:?}", response.method), "an HTTP method"));
            }
            let status = StatusCode::from_u16(response.status)
                .ok()
                .filter(|status| (200..600).contains(&status.as_u16()))
                .ok_or_else(|| refuse("status", response.status.to_string(), "200 to 599"))?;
            let fields = Fields::new(&response.headers, now).map_err(|BadHeader(found)| {
                refuse("headers", found, "a token and a value without control characters")
            })?;
            if response.think_ns > LONGEST_THINK_NS {
                return Err(refuse(
                    "think_ns",
                    response.think_ns.to_string(),
                    "at most an hour, 3600000000000",
                ));
            }
            let body = match &response.body {
                None => Bytes::new(),
                Some(file) => match bodies.get(file) {
                    Some(body) => body.clone(),
                    None => {
                        let body = std::fs::read(file).map(Bytes::from).map_err(|error| {
                            refuse("body", format!("{} ({error})", file.display()), "a readable file")
                        })?;
                        bodies.insert(file, body.clone());
                        body
                    }
                },
            };
            let part =
                fields.content_range.as_deref().and_then(ContentRange::parse).filter(|part| {
                    status == StatusCode::PARTIAL_CONTENT && part.length() == body.len() as u64
                });
            recording.index.add(&response.method, &target, i);
            for pattern in &response.patterns {
                let pattern = Target::parse(pattern).ok_or_else(|| {
                    refuse("patterns", format!("{pattern:?}"), "an absolute http or https address, with *")
                })?;
                recording.index.add_pattern(&response.method, &pattern, i);
            }
            let fields = Rc::new(fields);
            recording.responses.push(Recorded { status, fields, part, body, think_ns: response.think_ns });
        }
        Ok(recording)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(url: &str, status: u16) -> Response {
        Response {
            method: "GET".to_owned(),
            url: url.to_owned(),
            patterns: vec![],
            status,
            headers: vec![],
            body: None,
            think_ns: 0,
        }
    }

    fn refusal(response: Response) -> String {
        match Recording::load(Path::new("run.json"), &[response]) {
            Ok(_) => panic!("accepted"),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn a_refusal_names_file_key_and_what_is_accepted() {
        assert_eq!(
            refusal(response("about:blank", 200)),
            "run.json: server.responses[0].url: found \"about:blank\", accepted: an absolute http or https address"
        );
        assert_eq!(
            refusal(response("http://a/", 0)),
            "run.json: server.responses[0].status: found 0, accepted: 200 to 599"
        );
        assert_eq!(
            refusal(response("http://a/", 101)),
            "run.json: server.responses[0].status: found 101, accepted: 200 to 599"
        );
        let missing = Response { body: Some("/nonexistent/body".into()), ..response("http://a/", 200) };
        assert!(
            refusal(missing).starts_with("run.json: server.responses[0].body: found /nonexistent/body (")
        );
        let header = Response { headers: vec![("a\r\nb".into(), "c".into())], ..response("http://a/", 200) };
        assert!(refusal(header).contains("server.responses[0].headers: found \"a\\r\\nb\": \"c\""));
    }
}
