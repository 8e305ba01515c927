//! The example mesh of docs/audit.md, as the metrics of Istio show it.

use super::prometheus::Series;

/// A pair of services, the protocol, calls within the hour, attempts that reach the callee, and
/// calls that failed for good.
pub(super) type Edge = (&'static str, &'static str, &'static str, f64, f64, f64);

pub(super) const EDGES: [Edge; 7] = [
    ("shop-ingressgateway", "web", "http", 360_000.0, 361_800.0, 720.0),
    ("web", "checkout", "http", 36_000.0, 36_900.0, 360.0),
    ("web", "catalog", "http", 720_000.0, 727_200.0, 1_440.0),
    ("checkout", "payments", "http", 36_000.0, 37_080.0, 360.0),
    ("checkout", "mail", "http", 36_000.0, 36_000.0, 1_800.0),
    ("payments", "ledger", "grpc", 36_000.0, 37_800.0, 180.0),
    ("ledger", "archive", "http", 36_000.0, 43_200.0, 36.0),
];

/// What the sidecars of both sides have counted.
pub(super) fn series() -> Series {
    let mut series = Series::default();
    for (caller, callee, protocol, calls, attempts, failed) in EDGES {
        let labels = |reporter: &str, code: &str, grpc: &str| {
            format!(
                "reporter=\"{reporter}\",source_canonical_service=\"{caller}\",\
                 source_workload=\"{caller}-v1\",source_workload_namespace=\"shop\",\
                 destination_canonical_service=\"{callee}\",\
                 destination_workload_namespace=\"shop\",\
                 destination_service_name=\"{callee}\",destination_service_namespace=\"shop\",\
                 request_protocol=\"{protocol}\",response_code=\"{code}\",\
                 grpc_response_status=\"{grpc}\""
            )
        };
        let (bad, bad_grpc) = if protocol == "grpc" { ("200", "14") } else { ("503", "") };
        let good_grpc = if protocol == "grpc" { "0" } else { "" };
        let name = "istio_requests";
        series.counter(name, &labels("source", "200", good_grpc), calls - failed);
        series.counter(name, &labels("source", bad, bad_grpc), failed);
        let retried = attempts - calls;
        series.counter(name, &labels("destination", "200", good_grpc), calls - failed);
        series.counter(name, &labels("destination", bad, bad_grpc), failed + retried);
    }
    series
}
