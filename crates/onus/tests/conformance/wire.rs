//! How requests and answers look: as HTTP, or as gRPC with the status in one of its two places.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, header};
use onus::CallError;
use onus_conformance::StepVector;
use onus_conformance::step::{Method as MethodName, Step};

use super::setup::Foreseen;
use crate::cast::{Piece, Pieces};

/// A head and, where there are some, trailers.
pub(super) type Blocks = (Response<()>, Option<HeaderMap>);

/// How a vector is acted out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// Safe HTTP requests, and the status in the head.
    Http,
    /// gRPC calls with the status in the one block of an answer without a message.
    OneBlock,
    /// gRPC calls with the status in trailers.
    Trailers,
}

impl Wire {
    /// Why a vector says nothing of this wire.
    pub(super) fn differs(self, vector: &StepVector) -> Option<&'static str> {
        if self == Self::Http {
            return None;
        }
        let steps = || vector.steps.iter();
        if steps().any(|step| matches!(step, Step::Call(call) if call.method == MethodName::Unsafe))
        {
            return Some("has no unsafe methods");
        }
        if !Foreseen::in_vector(vector).breaking.is_empty() {
            return Some("is ok at the end of an answer, behind which nothing breaks");
        }
        let declared = vector.edges.values().filter_map(|edge| edge.declared.as_ref());
        let lists = vector.edges.values().map(|edge| &edge.errors);
        let lists = lists.chain(declared.map(|declared| &declared.errors));
        let in_steps = steps().filter_map(|step| {
            if let Step::Failed(failed) = step {
                failed.error
            } else if let Step::Judge(judge) = step {
                Some(judge.error)
            } else {
                None
            }
        });
        let mut errors = lists.flatten().flatten().copied().chain(in_steps);
        let http = errors.any(|error| matches!(error.0, CallError::Http(_)));
        http.then_some("has no statuses of HTTP")
    }

    /// What a call says of sending it twice.
    pub(super) fn method(self, asked: MethodName) -> MethodName {
        match (self, asked) {
            (Self::OneBlock | Self::Trailers, MethodName::Safe) => MethodName::Grpc,
            (_, asked) => asked,
        }
    }

    /// A request to the service.
    pub(super) fn request(self) -> Request<Pieces> {
        let mut request = Request::get("/").body(Pieces::empty()).unwrap();
        if self != Self::Http {
            *request.method_mut() = Method::POST;
            *request.uri_mut() = METHOD.parse().unwrap();
            request.headers_mut().insert(header::CONTENT_TYPE, GRPC);
        }
        request
    }

    /// The error of a callee of which a vector does not say more.
    pub(super) fn error(self) -> CallError {
        match self {
            Self::Http => CallError::Http(503),
            Self::OneBlock | Self::Trailers => CallError::Grpc(14),
        }
    }

    /// What the service answers: that all went well, or an error.
    pub(super) fn answer(self, is_ok: bool) -> Response<Pieces> {
        let answer = Response::builder();
        let answer = match self {
            Self::Http => answer.status(if is_ok { 200 } else { 500 }),
            Self::OneBlock | Self::Trailers => answer.header(header::CONTENT_TYPE, GRPC),
        };
        let code = if is_ok { "0" } else { "13" };
        let answer = match self {
            Self::Http => answer.body(Pieces::empty()),
            Self::OneBlock => answer.header(GRPC_STATUS, code).body(Pieces::empty()),
            Self::Trailers => {
                answer.body(Pieces::new([Piece::Trailers(vec![("grpc-status", code)])]))
            }
        };
        answer.unwrap()
    }

    /// The head and the trailers of an answer that has these lines beside its status; `error` is
    /// `None` for one that is ok. A vector may ask for a gRPC status over HTTP: one block has it.
    pub(super) fn blocks(self, error: Option<CallError>, lines: HeaderMap) -> Blocks {
        let mut head = Response::new(());
        *head.headers_mut() = lines;
        let code = match (self, error) {
            (Self::Http, None) => return (head, None),
            (_, Some(CallError::Http(status))) => {
                *head.status_mut() = status.try_into().unwrap();
                return (head, None);
            }
            (_, Some(CallError::Grpc(code))) => code,
            (Self::OneBlock | Self::Trailers, None) => 0,
            (_, Some(error)) => panic!("{error:?} is no answer"),
        };
        head.headers_mut().insert(GRPC_STATUS, u16::from(code).into());
        let trailers = (self == Self::Trailers).then(|| std::mem::take(head.headers_mut()));
        head.headers_mut().insert(header::CONTENT_TYPE, GRPC);
        (head, trailers)
    }
}

/// The one method of all callees, and of the service.
pub(super) const METHOD: &str = "/onus.Vector/Call";

pub(super) const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
