//! Everything observable of evaluations, and objects to evaluate.

use std::fmt::Write;

use kpvm::engine::observer::{Event, Observer};
use kpvm::engine::{Bundle, Config, Engine, Input, Request, Session};
use kpvm::host::NoHost;
use kpvm_semantics::limits::Limits;

/// Limits of evaluations: fuel for a fiftieth of the default work, so that an input within them
/// takes far less than a second even with instrumentation.
pub(crate) const LIMITS: Limits = Limits {
    rule_fuel: 100_000,
    request_fuel: 400_000,
    cel_fuel: 100_000,
    ..Limits::DEFAULT
};

/// Objects that most rules match.
pub(crate) const OBJECTS: [&[u8]; 4] = [
    br#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","labels":{"app":"a","example.com/b":"c"},"annotations":{"x":"y"}},"spec":{"containers":[{"name":"a","image":"nginx:latest","ports":[{"containerPort":80}],"resources":{"limits":{"memory":"1Gi","cpu":"500m"}}},{"name":"b","image":"redis","securityContext":{"privileged":true}}],"volumes":[{"name":"v","hostPath":{"path":"/s"}}]}}"#,
    br#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"safe","namespace":"default"},"spec":{"hostNetwork":false,"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},"containers":[{"name":"a","image":"registry.example.com/a:1.2.3","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"runAsUser":1000}}]}}"#,
    br#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":3,"x":1.5,"template":{"metadata":{"labels":{"app":"d"}},"spec":{"containers":[{"name":"a","image":"busybox:1"}]}}}}"#,
    br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"b","n":"10"}}"#,
];

/// Whether an answer depends on how much was computed, which differs between two ways to
/// compute it.
pub(crate) fn depends_on_fuel(answer: &str) -> bool {
    answer.contains("limit exceeded")
}

/// Everything observable of an evaluation and of a decision.
pub(crate) fn seen(session: &mut Session<'_>, request: &Request<'_>) -> String {
    let mut text = String::new();
    let mut refuses = false;
    match session.evaluate(request) {
        Err(error) => return error.to_string(),
        Ok(evaluation) => {
            for response in evaluation.responses() {
                let message = response.message();
                assert!(message.len() <= 1 << 16, "a message is too long");
                let _ = writeln!(
                    text,
                    "{}/{} {} {message} {:?} {:?} {:?} {:?}",
                    response.policy(),
                    response.rule(),
                    response.status(),
                    response.failure(),
                    response.pod_security(),
                    response.properties().collect::<Vec<_>>(),
                    response.exceptions().collect::<Vec<_>>(),
                );
                refuses |= match response.status() {
                    kpvm::engine::Status::Fail => response.is_enforced(),
                    kpvm::engine::Status::Error => true,
                    _ => false,
                };
            }
        }
    }
    let decision = session
        .decide(request)
        .map(|decision| decision.is_admitted());
    assert_eq!(decision, Ok(!refuses), "decision and responses: {text}");
    text
}

/// Records that events can be shown.
struct Telling;

impl Observer for Telling {
    fn observe(&mut self, event: &Event<'_>) {
        if !matches!(event, Event::Decided(_)) {
            assert!(
                format!("{event:?}").len() <= 1 << 17,
                "an event is too long"
            );
        }
    }
}

/// Engines of one bundle with all combinations of projection and plans.
pub(crate) struct Engines([Engine; 4]);

impl Engines {
    pub(crate) fn new(bundle: &Bundle<'static>) -> Self {
        let engine = |projection, plans| {
            let config = Config::new()
                .with_limits(LIMITS)
                .with_projection(projection);
            Engine::with_config(bundle.clone(), config.with_plans(plans))
        };
        Self([
            engine(false, false),
            engine(true, true),
            engine(true, false),
            engine(false, true),
        ])
    }

    /// Sessions that answer one object after another.
    pub(crate) fn sessions(&self) -> Sessions<'_> {
        Sessions {
            used: self.0.each_ref().map(Session::new),
        }
    }
}

/// Sessions of [`Engines`].
pub(crate) struct Sessions<'e> {
    used: [Session<'e>; 4],
}

impl Sessions<'_> {
    /// Asserts that a used session, a fresh one and an observed one answer alike; with
    /// `is_verified`, also that projection and plan change nothing. Returns the answer.
    pub(crate) fn assert_same(&mut self, request: &Request<'_>, is_verified: bool) -> String {
        let [plain, others @ ..] = &mut self.used;
        let expected = seen(plain, request);
        if depends_on_fuel(&expected) {
            return expected;
        }
        let fresh = seen(&mut Session::new(plain.engine()), request);
        assert_eq!(expected, fresh, "a used session and a fresh one");
        let responses = |evaluation: kpvm::engine::Evaluation<'_>| -> Vec<String> {
            let responses = evaluation.responses();
            responses
                .map(|response| format!("{} {}", response.status(), response.message()))
                .collect()
        };
        let watched = plain.evaluate_observed(request, &mut NoHost, &mut Telling);
        let watched = watched.map(responses).ok();
        let unwatched = plain.evaluate(request).map(responses).ok();
        assert_eq!(watched, unwatched, "an observed evaluation");
        for (number, session) in others.iter_mut().enumerate() {
            let found = seen(session, request);
            if is_verified && !depends_on_fuel(&found) {
                assert_eq!(expected, found, "projection and plan {number}");
            }
        }
        expected
    }
}

/// Evaluates all [`OBJECTS`], and changes from one to the next.
pub(crate) fn assert_same_answers(bundle: &Bundle<'static>, is_verified: bool) {
    let engines = Engines::new(bundle);
    let mut sessions = engines.sessions();
    for (number, object) in OBJECTS.iter().enumerate() {
        sessions.assert_same(&Request::create(Input::Json(object)), is_verified);
        let next = OBJECTS[(number + 1) % OBJECTS.len()];
        if number == 0 {
            let update = Request::update(Input::Json(object), Input::Json(next));
            sessions.assert_same(&update, is_verified);
            sessions.assert_same(&Request::delete(Input::Json(object)), is_verified);
        }
    }
}
