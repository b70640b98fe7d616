//! What a bundle stores about its code: it is what the compiler derives, and a bundle that
//! stores something else is found out.

use kpvm_compiler::analysis::{self, UntrustedError};
use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::source::Sources;
use kpvm_format::outside::OutsideKind;
use kpvm_format::{Bundle, BundleBuilder};

const POLICY: &str = r#"
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: tags}
spec:
  rules:
    - name: tagged
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate:
        pattern: {spec: {containers: [{image: "*:*"}]}}
    - name: of-the-team
      match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: a}]}]}
      context:
        - name: teams
          configMap: {name: teams, namespace: "{{ request.namespace }}"}
      validate:
        deny:
          conditions: {any: [{key: "{{ teams.data.a }}", operator: Equals, value: b}]}
"#;

fn bundle() -> Vec<u8> {
    let mut sources = Sources::new();
    sources.add("policy.yaml", POLICY.to_owned());
    let compilation = compile(&sources, &Options::default());
    assert!(!compilation.has_errors(), "{:?}", compilation.diagnostics);
    compilation.bundle.unwrap()
}

#[test]
fn a_fresh_bundle_stores_what_its_code_says() {
    let bytes = bundle();
    let bundle = analysis::load(bytes.as_slice()).unwrap();
    assert!(!bundle.tables().plans.is_empty());
    // A bundle that is taken over and written again is the same.
    let mut again = BundleBuilder::from_bundle(&bundle);
    analysis::add_analyses(&mut again);
    assert_eq!(again.finish(), bytes);
}

#[test]
fn a_bundle_that_stores_something_else_is_found_out() {
    let bytes = bundle();
    let bundle = Bundle::load(bytes.as_slice()).unwrap();
    type Forge = fn(&mut BundleBuilder);
    let rows: [(&str, Forge); 4] = [
        ("plan_spots", |bundle| {
            bundle
                .plan_spots
                .iter_mut()
                .for_each(|spot| spot.test_count = 0.into());
        }),
        ("plan_breaks", |bundle| {
            bundle
                .plan_breaks
                .iter_mut()
                .for_each(|number| *number = u16::MAX.into());
        }),
        ("topics", |bundle| bundle.topics.clear()),
        ("outside_demands", |bundle| bundle.outside_demands.clear()),
    ];
    for (section, forge) in rows {
        let mut forged = BundleBuilder::from_bundle(&bundle);
        forge(&mut forged);
        let forged = forged.finish();
        // It is safe to run, so loading alone accepts it.
        Bundle::load(forged.as_slice()).unwrap();
        match analysis::load(forged.as_slice()) {
            Err(UntrustedError::Mismatch(mismatch)) => {
                assert_eq!(mismatch.sections, [section]);
            }
            other => panic!("{section}: {other:?}"),
        }
    }
}

#[test]
fn a_rule_says_what_it_asks_for() {
    let bytes = bundle();
    let bundle = Bundle::load(bytes.as_slice()).unwrap();
    let tables = bundle.tables();
    let kinds = |rule: u32| {
        let demands = tables.demands_of_rule(rule).iter();
        demands
            .filter_map(|demand| demand.kind())
            .collect::<Vec<_>>()
    };
    let number = |name: &str| {
        let mut names = tables.rules.iter().map(|rule| tables.text(rule.name));
        names.position(|known| known == name).unwrap() as u32
    };
    assert_eq!(kinds(number("tagged")), []);
    let rule = number("of-the-team");
    assert_eq!(kinds(rule), [OutsideKind::UserInfo, OutsideKind::ConfigMap]);
    let fields = tables.demands_of_rule(rule)[1].fields;
    let fields = kpvm_format::Tables::range(tables.outside_fields, fields).iter();
    let shown: Vec<String> = fields
        .map(|field| {
            let (name, value) = (
                tables.outside_text(field.name),
                tables.outside_text(field.value),
            );
            format!("{name}={value}")
        })
        .collect();
    assert_eq!(shown, ["name=\"teams\"", "namespace=\"<computed>\""]);
}
