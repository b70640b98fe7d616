//! Replaces the policies while threads evaluate: `cargo run -p kpvm --example hot_reload`.
//!
//! The current engine is an `Arc` behind a lock that is held only to copy or replace the `Arc`.
//! A thread evaluates with the engine that it has until it sees a newer generation. The old
//! engine is freed when the last thread lets go of it.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;

use kpvm::engine::{Buffers, Engine, Input, Request, Session};
use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::source::Sources;

const POD: &[u8] = br#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}"#;

/// The current engine, which can be replaced at any time.
struct Reloadable {
    engine: RwLock<Arc<Engine>>,
    generation: AtomicU64,
}

impl Reloadable {
    fn new(engine: Engine) -> Self {
        Self {
            engine: RwLock::new(Arc::new(engine)),
            generation: AtomicU64::new(0),
        }
    }

    /// The current engine and its generation.
    fn current(&self) -> (Arc<Engine>, u64) {
        let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner);
        (engine.clone(), self.generation())
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Replaces the engine; evaluations that are under way keep theirs.
    fn replace(&self, engine: Engine) {
        let mut current = self.engine.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(engine);
        self.generation.fetch_add(1, Ordering::Release);
    }
}

/// Evaluates until the last generation has been seen. Returns the number of evaluations.
fn work(policies: &Reloadable, last_generation: u64) -> u64 {
    let mut evaluations = 0;
    let mut buffers = Buffers::default();
    loop {
        let (engine, generation) = policies.current();
        let mut session = Session::with_buffers(&engine, buffers);
        loop {
            let request = Request::create(Input::Json(POD));
            let decision = session
                .decide(&request)
                .map(|decision| decision.is_admitted());
            // Every second generation refuses the Pod, none does both.
            assert_eq!(decision, Ok(generation % 2 == 0));
            evaluations += 1;
            if policies.generation() != generation {
                break;
            }
            if generation == last_generation {
                return evaluations;
            }
        }
        buffers = session.into_buffers();
    }
}

/// An engine with one policy about the name of Pods.
fn engine(pattern: &str) -> Result<Engine, Box<dyn Error>> {
    let policy = format!(
        "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: names}}
spec:
  validationFailureAction: Enforce
  rules:
  - name: name
    match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}
    validate: {{pattern: {{metadata: {{name: '{pattern}'}}}}}}
"
    );
    let mut sources = Sources::new();
    sources.add("names.yaml", policy);
    let compilation = compile(&sources, &Options::default());
    let bundle = compilation.bundle.ok_or("the policy has errors")?;
    Ok(Engine::load(bundle)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    const GENERATIONS: u64 = 100;
    let (admits, refuses) = (engine("web")?, engine("!web")?);
    let policies = Reloadable::new(admits.clone());
    let evaluations = thread::scope(|scope| {
        let start = |_| scope.spawn(|| work(&policies, GENERATIONS));
        let threads: Vec<_> = (0..2).map(start).collect();
        for generation in 1..=GENERATIONS {
            let next = if generation % 2 == 0 {
                &admits
            } else {
                &refuses
            };
            policies.replace(next.clone());
            thread::yield_now();
        }
        let counts = threads.into_iter().map(|thread| thread.join());
        counts.sum::<Result<u64, _>>()
    });
    let evaluations = evaluations.map_err(|_| "a thread saw the wrong policies")?;
    println!("{GENERATIONS} reloads during {evaluations} evaluations, each with one engine");
    assert!(evaluations > 0);
    Ok(())
}
