//! Generates the expressions of the table: from the overloads of every function, and from
//! lists of what is not a function (`syntax.txt`).

use std::collections::BTreeSet;

use kpvm_format::cel::{Function, Library};

use super::values::{DYNAMIC, STATIC, of_type};

/// Combinations of arguments of one overload; of more, an even choice is taken.
const MOST: usize = 90;

/// Expressions that are not calls with all kinds of arguments, one per line.
const SYNTAX: &str = include_str!("syntax.txt");

/// Calls that end Kyverno itself (a stack that overflows, more memory than there is), and
/// those that depend on chance.
const LEFT_OUT: [&str; 4] = [
    "json.marshal(dyn(format.",
    "lists.range(9223372036854775807",
    "random()",
    "random.random()",
];

/// Every expression, without duplicates, in a fixed order.
pub fn expressions() -> Vec<String> {
    let mut all = Vec::new();
    for &function in Function::ALL {
        if is_skipped(function) {
            continue;
        }
        for overload in function.overloads() {
            overloads(function.name(), overload, &mut all);
        }
    }
    for macro_like in ["math.least", "math.greatest"] {
        for overload in Function::MathMin.overloads() {
            overloads(macro_like, overload, &mut all);
        }
    }
    let lines = SYNTAX
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("//"));
    for line in lines {
        match line.strip_prefix("= ") {
            Some(value) => all.push(shown(value)),
            None => all.push(line.to_owned()),
        }
    }
    let mut known = BTreeSet::new();
    all.retain(|expression| {
        !LEFT_OUT.iter().any(|part| expression.contains(part)) && known.insert(expression.clone())
    });
    all
}

/// What has no name in expressions, depends on chance, or asks for outside data.
fn is_skipped(function: Function) -> bool {
    function.asks_host() && !matches!(function, Function::Random | Function::RandomRandom)
        || matches!(
            function,
            Function::SortByKeys
                | Function::MathMin
                | Function::MathMax
                | Function::OrValueCompat
                | Function::TimeNow
        )
        || matches!(
            function.library(),
            Library::StringsLater
                | Library::KyvernoCluster
                | Library::KyvernoNamespaced
                | Library::Block
        )
        || function
            .overloads()
            .iter()
            .any(|overload| overload.contains("kubernetes.authorization"))
}

/// `receiver.(a, b) -> r` in parts: whether it has a receiver, the types, the result.
fn parts(overload: &str) -> (bool, Vec<String>, &str) {
    let (left, result) = overload.rsplit_once(" -> ").unwrap_or((overload, ""));
    let (receiver, arguments) = match left.split_once(".(") {
        Some((receiver, arguments)) => (Some(receiver), arguments),
        None => (None, left.strip_prefix('(').unwrap_or(left)),
    };
    let arguments = arguments.strip_suffix(')').unwrap_or(arguments);
    let mut types: Vec<String> = receiver.iter().map(|text| (*text).to_owned()).collect();
    let (mut depth, mut current) = (0, String::new());
    for character in arguments.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                types.push(std::mem::take(&mut current).trim().to_owned());
                continue;
            }
            _ => {}
        }
        current.push(character);
    }
    if !current.trim().is_empty() {
        types.push(current.trim().to_owned());
    }
    (receiver.is_some(), types, result)
}

/// A call, as it is written.
fn written(name: &str, method: bool, arguments: &[String]) -> String {
    let operator = name.trim_matches('_');
    match (name, arguments) {
        ("!_" | "-_", [operand]) => format!("{operator}({operand})"),
        ("_[_]", [operand, index]) => format!("({operand})[{index}]"),
        ("_[?_]", [operand, index]) => format!("({operand})[?{index}]"),
        ("@in", [left, right]) => format!("({left}) in ({right})"),
        (name, [left, right]) if name.starts_with('_') => {
            format!("({left}) {operator} ({right})")
        }
        (_, [receiver, rest @ ..]) if method => format!("({receiver}).{name}({})", rest.join(", ")),
        _ => format!("{name}({})", arguments.join(", ")),
    }
}

/// A validation whose error shows any value that `format` can show.
fn shown(value: &str) -> String {
    format!("{{'': true}}['%s'.format([{value}])]")
}

/// Validations that show a value of a type.
fn reveal(value: &str, ty: &str) -> Vec<String> {
    let members = |names: &[&str]| -> Vec<String> {
        names
            .iter()
            .map(|name| shown(&format!("{value}.{name}")))
            .collect()
    };
    match ty {
        "bool" => vec![value.to_owned()],
        "net.IP" | "net.CIDR" => vec![shown(&format!("string({value})"))],
        "kubernetes.Quantity" => members(&[
            "asApproximateFloat()",
            "isInteger()",
            "compareTo(quantity('1'))",
        ]),
        "kubernetes.URL" => members(&["getHost()", "getEscapedPath()"]),
        "kubernetes.Semver" => members(&["major()", "patch()", "compareTo(semver('1.2.3'))"]),
        "kubernetes.NamedFormat" => members(&["validate('a').hasValue()"]),
        "kyverno.ImageReference" => members(&[
            "registry()",
            "repository()",
            "tag()",
            "digest()",
            "identifier()",
            "identifierWithSeparator()",
        ]),
        "kyverno.ServiceAccount" => members(&["Name", "Namespace"]),
        "optional(kubernetes.NamedFormat)" => vec![format!("{value}.hasValue()")],
        _ if ty.starts_with("optional(") => {
            vec![
                format!("{value}.hasValue()"),
                shown(&format!("{value}.orValue(null)")),
            ]
        }
        _ => vec![shown(value)],
    }
}

fn overloads(name: &str, overload: &str, all: &mut Vec<String>) {
    let (method, types, result) = parts(overload);
    let pools: Vec<Vec<String>> = types
        .iter()
        .enumerate()
        .map(|(position, ty)| of_type(ty, name, position))
        .collect();
    let total: usize = pools.iter().map(Vec::len).product();
    let mut call = |arguments: &[String]| {
        all.extend(reveal(&written(name, method, arguments), result));
    };
    // A step without a common factor visits every value of every pool.
    let step = (1..).find(|step| {
        total / step <= MOST && pools.iter().all(|pool| is_coprime(*step, pool.len()))
    });
    let step = if total <= MOST { 1 } else { step.unwrap_or(1) };
    for number in (0..total).step_by(step) {
        let mut rest = number;
        let mut arguments = Vec::new();
        for pool in &pools {
            arguments.push(pool[rest % pool.len()].clone());
            rest /= pool.len();
        }
        call(&arguments);
    }
    let Some(usual): Option<Vec<String>> = pools
        .iter()
        .map(|pool| pool.get(1).or(pool.first()).cloned())
        .collect()
    else {
        return;
    };
    for position in 0..usual.len() {
        for other in DYNAMIC.iter().chain(STATIC) {
            let mut arguments = usual.clone();
            if let Some(argument) = arguments.get_mut(position) {
                *argument = (*other).to_owned();
            }
            call(&arguments);
        }
        // Known only at evaluation, but of the right type.
        for value in pools.get(position).into_iter().flatten().take(2) {
            let mut arguments = usual.clone();
            if let Some(argument) = arguments.get_mut(position) {
                *argument = format!("dyn({value})");
            }
            call(&arguments);
        }
    }
    if !name.starts_with('_') && name != "@in" && !name.ends_with('_') {
        let mut more = usual.clone();
        more.push("1".to_owned());
        call(&more);
        if usual.len() > usize::from(method) {
            call(&usual[..usual.len() - 1]);
        }
    }
}

fn is_coprime(left: usize, right: usize) -> bool {
    let (mut left, mut right) = (left, right);
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left == 1
}
