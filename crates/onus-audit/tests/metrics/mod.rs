//! What series of each mesh come to.

use onus_audit::{About, questions};

use super::{lines, metrics, of_metrics};

#[test]
fn both_sides_of_istio_make_attempts_per_call() {
    let metrics = metrics(&[
        (
            About::IstioRequests,
            &[
                (
                    "reporter=source,source_canonical_service=web,source_workload_namespace=shop,destination_canonical_service=cart-api,destination_workload_namespace=shop,destination_service_name=cart,destination_service_namespace=shop,request_protocol=http",
                    800.0,
                ),
                // The callee was never reached: only its service has a name.
                (
                    "reporter=source,source_canonical_service=web,source_workload_namespace=shop,destination_canonical_service=unknown,destination_workload_namespace=unknown,destination_service_name=cart,destination_service_namespace=shop,request_protocol=http",
                    200.0,
                ),
                (
                    "reporter=destination,source_canonical_service=web,source_workload_namespace=shop,destination_canonical_service=cart-api,destination_workload_namespace=shop,destination_service_name=cart,destination_service_namespace=shop,request_protocol=http",
                    1500.0,
                ),
                // What the service is called and what its workload is called are one service.
                (
                    "reporter=source,source_canonical_service=cart-api,source_workload_namespace=shop,destination_canonical_service=stock,destination_workload_namespace=shop,destination_service_name=stock,destination_service_namespace=shop,request_protocol=grpc",
                    1000.0,
                ),
                (
                    "reporter=destination,source_canonical_service=unknown,source_workload_namespace=unknown,destination_canonical_service=web,destination_workload_namespace=shop,destination_service_name=web,destination_service_namespace=shop,request_protocol=http",
                    70.0,
                ),
                (
                    "reporter=source,source_canonical_service=web,source_workload_namespace=shop,destination_canonical_service=unknown,destination_service_name=PassthroughCluster,destination_service_namespace=unknown,request_protocol=http",
                    5.0,
                ),
                (
                    "reporter=waypoint,source_canonical_service=web,source_workload_namespace=shop,destination_canonical_service=stock,destination_service_name=stock,destination_service_namespace=shop,request_protocol=http",
                    9.0,
                ),
            ],
        ),
        (
            About::IstioFailures,
            &[(
                "reporter=source,source_canonical_service=web,source_workload_namespace=shop,destination_canonical_service=unknown,destination_workload_namespace=unknown,destination_service_name=cart,destination_service_namespace=shop,request_protocol=http",
                50.0,
            )],
        ),
    ]);
    assert_eq!(metrics.sources(), ["Istio"]);
    let audit = of_metrics(&metrics);
    assert_eq!(
        lines(&audit),
        [
            // gRPC's UNAVAILABLE is retried by a mesh that nobody has touched.
            "cart-api -> stock: 1000 calls, 0 failed, - seen, unknown, 3 attempts by default of the mesh",
            "web -> cart-api: 1000 calls, 0.05 failed, 1.5 seen, unknown, 2 attempts by metrics",
        ]
    );
    assert_eq!(
        audit.notes[1..],
        [
            "istio_requests_total: 70 requests come from callers that Istio does not name, as from \
             outside of the mesh",
            "istio_requests_total: 5 requests go to hosts that Istio does not know",
            "istio_requests_total: 9 requests are reported by neither side's sidecar, as by \
             waypoints of ambient meshes",
        ]
    );
}

#[test]
fn one_name_in_two_namespaces_is_two_services() {
    let row = |from: &str, to: &str| {
        format!(
            "reporter=source,source_canonical_service=api,source_workload_namespace={from},destination_canonical_service=db,destination_workload_namespace={to},destination_service_name=db,destination_service_namespace={to},request_protocol=http"
        )
    };
    let (blue, green) = (row("blue", "blue"), row("green", "blue"));
    let metrics = metrics(&[(About::IstioRequests, &[(&blue, 10.0), (&green, 20.0)])]);
    let audit = of_metrics(&metrics);
    let names: Vec<_> = audit.storms.apis.iter().map(|api| api.service.as_str()).collect();
    assert_eq!(names, ["api.blue", "api.green"]);
}

#[test]
fn series_of_linkerd() {
    let metrics = metrics(&[
        (
            About::LinkerdResponses,
            &[
                (
                    "namespace=shop,deployment=web,dst_namespace=shop,dst_service=cart,classification=success",
                    900.0,
                ),
                (
                    "namespace=shop,deployment=web,dst_namespace=shop,dst_service=cart,classification=failure",
                    100.0,
                ),
                (
                    "namespace=shop,deployment=web,dst_namespace=shop,dst_deployment=mail,classification=success",
                    50.0,
                ),
                ("namespace=shop,deployment=web,classification=success", 5.0),
            ],
        ),
        (
            About::LinkerdRouteCalls,
            &[
                (
                    "namespace=shop,deployment=web,dst=cart.shop.svc.cluster.local:80,classification=success",
                    760.0,
                ),
                (
                    "namespace=shop,deployment=web,dst=cart.shop.svc.cluster.local:80,classification=failure",
                    40.0,
                ),
            ],
        ),
        (
            About::LinkerdRouteAttempts,
            &[(
                "namespace=shop,deployment=web,dst=cart.shop.svc.cluster.local:80,classification=success",
                1000.0,
            )],
        ),
        (
            About::LinkerdCalls,
            &[
                (
                    "namespace=shop,deployment=cart,parent_name=stock,parent_namespace=shop,http_status=200",
                    300.0,
                ),
                (
                    "namespace=shop,deployment=cart,parent_name=stock,parent_namespace=shop,http_status=503",
                    60.0,
                ),
                (
                    "namespace=shop,deployment=cart,parent_name=stock,parent_namespace=shop,grpc_status=UNAVAILABLE",
                    40.0,
                ),
            ],
        ),
        (
            About::LinkerdRetries,
            &[("namespace=shop,deployment=cart,parent_name=stock,parent_namespace=shop", 100.0)],
        ),
    ]);
    let audit = of_metrics(&metrics);
    assert_eq!(
        lines(&audit),
        [
            "cart -> stock: 400 calls, 0.25 failed, 1.25 seen, unknown, 2 attempts by metrics",
            "web -> cart: 800 calls, 0.05 failed, 1.25 seen, unknown, 2 attempts by metrics",
            "web -> mail: 50 calls, 0 failed, - seen, unknown, 1 attempts by nothing",
        ]
    );
    let told = "Linkerd's series: some calls have no deployment or no service to call";
    assert!(audit.notes.iter().any(|note| note == told), "{:?}", audit.notes);
}

#[test]
fn where_onus_runs_its_classes_and_modes_count() {
    let series = metrics(&[
        (
            About::OnusCalls,
            &[
                ("caller=web,callee=cart,outcome=ok", 900.0),
                ("caller=web,callee=cart,outcome=error", 100.0),
                ("caller=web,callee=ads,outcome=ok", 1000.0),
                ("caller=cart,callee=stock,outcome=ok", 1000.0),
            ],
        ),
        (
            About::OnusRetries,
            &[
                ("caller=web,callee=cart", 100.0),
                ("caller=web,callee=ads", 500.0),
                ("caller=cart,callee=stock", 200.0),
            ],
        ),
        (
            About::OnusClasses,
            &[
                (
                    "caller=web,callee=ads,caller_method=GET /,callee_method=GET /ad,class=fail-open",
                    1.0,
                ),
                (
                    "caller=web,callee=cart,caller_method=GET /,callee_method=GET /c,class=fail-open",
                    1.0,
                ),
                (
                    "caller=web,callee=cart,caller_method=GET /,callee_method=POST /c,class=fail-close",
                    1.0,
                ),
            ],
        ),
        (
            About::OnusModes,
            &[
                ("service=web,mode=enforce", 1.0),
                ("service=cart,mode=enforce", 1.0),
                ("service=stock,mode=enforce", 1.0),
            ],
        ),
    ]);
    let audit = of_metrics(&series);
    assert_eq!(
        lines(&audit),
        [
            "cart -> stock: 1000 calls, 0 failed, 1.2 seen, unknown, 2 attempts by metrics",
            "web -> ads: 1000 calls, 0 failed, 1.5 seen, fail-open, 2 attempts by metrics",
            "web -> cart: 1000 calls, 0.1 failed, 1.1 seen, fail-close, 2 attempts by metrics",
        ]
    );
    // Enforcing services stop a storm already.
    assert_eq!((audit.storms.apis[0].radius, audit.storms.apis[0].amplification), (1, 2.0));
}

#[test]
fn instances_that_disagree_count_as_the_one_that_does_less() {
    let calls: &[_] =
        &[("caller=a,callee=b,outcome=ok", 1000.0), ("caller=b,callee=c,outcome=ok", 1000.0)];
    let retries: &[_] = &[("caller=a,callee=b", 100.0), ("caller=b,callee=c", 100.0)];
    for (modes, radius) in [
        (&["enforce", "enforce"][..], 1),
        (&["enforce", "observe"][..], 2),
        (&["observe", "enforce"][..], 2),
        (&["off", "enforce"][..], 2),
        (&[][..], 2),
    ] {
        let modes: Vec<_> = modes.iter().map(|mode| format!("service=a,mode={mode}")).collect();
        let mut series: Vec<_> = modes.iter().map(|labels| (labels.as_str(), 1.0)).collect();
        series.extend([("service=b,mode=enforce", 1.0), ("service=c,mode=enforce", 1.0)]);
        let metrics = metrics(&[
            (About::OnusCalls, calls),
            (About::OnusRetries, retries),
            (About::OnusModes, &series),
        ]);
        assert_eq!(of_metrics(&metrics).storms.apis[0].radius, radius, "{modes:?}");
    }
}

#[test]
fn numbers_that_say_nothing_are_left_out() {
    let metrics = metrics(&[(
        About::OnusCalls,
        &[("caller=a,callee=b,outcome=ok", f64::NAN), ("caller=a,callee=b,outcome=ok", 0.0)],
    )]);
    assert!(!metrics.any());
    assert_eq!(of_metrics(&metrics).summary.edges, 0);
}

#[test]
fn questions_are_about_the_time_that_is_asked_for() {
    let questions = questions("6h");
    assert_eq!(questions.len(), 13);
    for question in questions {
        let gauge = matches!(question.about, About::OnusClasses | About::OnusModes);
        assert_eq!(question.promql.contains("[6h]"), !gauge, "{}", question.promql);
    }
}
