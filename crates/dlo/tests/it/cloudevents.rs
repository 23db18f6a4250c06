//! CloudEvents lines: the bytes of the data, every attribute's place, and every refusal.

use dlo::cloudevents::{EventError, Intake, MAX_LINE_BYTES, parse_line};
use dlo::core::{NewEntry, Payload, PayloadForm, TenantId};
use dlo::{ProcessEnv, Registry};
use proptest::prelude::*;

fn parse(line: &str) -> Result<NewEntry, EventError> {
    let env = ProcessEnv::new(Registry::empty());
    parse_line(line.as_bytes(), &Intake::new(TenantId::default_tenant()), &env)
}

/// A valid event with further members.
fn event(members: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t"{members}}}"#)
}

fn payload(members: &str) -> (Vec<u8>, PayloadForm) {
    match parse(&event(members)).unwrap().envelope.payload {
        Payload::Bytes { bytes, form } => (bytes.to_vec(), form),
        other => panic!("must carry bytes: {other:?}"),
    }
}

#[test]
fn json_data_keeps_the_bytes_as_they_stand_in_the_line() {
    for data in [
        r#"{ "b" : 1,  "a":[ 1.10, 2e3 ],"a":"\u00e9/\/" }"#,
        "123456789012345678901234567890.10",
        "null",
        "\"text\"",
        "[ ]",
    ] {
        let (bytes, form) = payload(&format!(",\"data\": {data} ,\"x\":1"));
        assert_eq!((String::from_utf8(bytes).unwrap().as_str(), form), (data, PayloadForm::Json));
    }
    let (bytes, _) = payload(r#","datacontenttype":"application/vnd.x+json; v=1","data":"é""#);
    assert_eq!(bytes, "\"é\"".as_bytes());
}

#[test]
fn other_content_types_carry_the_text_or_the_bytes() {
    assert_eq!(payload(r#","datacontenttype":"text/plain","data":"a\nb""#), (b"a\nb".to_vec(), PayloadForm::Binary));
    assert_eq!(
        payload(r#","datacontenttype":"text/xml","data":{"a": 1}"#),
        (b"{\"a\": 1}".to_vec(), PayloadForm::Json)
    );
    assert_eq!(payload(r#","data_base64":"AP8K""#), (vec![0, 255, 10], PayloadForm::Binary));
    assert_eq!(parse(&event("")).unwrap().envelope.payload, Payload::None);
    let descriptor = parse(&event(r#","dlodatakind":"s3","dlodatahash":"sha256:00","dlodatasize":7"#)).unwrap();
    assert_eq!(
        descriptor.envelope.payload,
        Payload::Descriptor { kind: "s3".into(), hash: Some("sha256:00".into()), size: Some(7) }
    );
}

#[test]
fn every_attribute_has_its_place() {
    let item = parse(&event(
        r#","subject":"sub","time":"2026-11-30T12:00:00Z","datacontenttype":"application/json","dataschema":"sch",
        "traceparent":"00-a-b-01","tracestate":"k=v","correlationid":"cor","auditresidueid":"aud","principal":"pri",
        "region":"eu","workload":"wor","policyversion":3,"policyhash":"ph","schemaversion":"sv","sequencehint":"12",
        "partitionkey":"pk","expirytime":"2027-01-01T00:00:00Z","dloagentmodel":"m1","other":true,"count":-5,
        "gone":null,"data":{}"#,
    ))
    .unwrap();
    let envelope = item.envelope;
    assert_eq!(envelope.event_type, "t");
    assert_eq!(envelope.source.as_deref(), Some("/s"));
    assert_eq!(envelope.source_event_id.as_deref(), Some("1"));
    assert_eq!(envelope.subject.as_deref(), Some("sub"));
    assert_eq!(envelope.occurred.unwrap().to_string(), "2026-11-30T12:00:00.000000Z");
    assert_eq!(envelope.content_type.as_deref(), Some("application/json"));
    assert_eq!(envelope.schema.as_deref(), Some("sch"));
    assert_eq!(envelope.schema_version.as_deref(), Some("sv"));
    let trace = envelope.trace.unwrap();
    assert_eq!((trace.parent.as_str(), trace.state.as_deref()), ("00-a-b-01", Some("k=v")));
    assert_eq!(envelope.correlation_id.as_deref(), Some("cor"));
    assert_eq!(envelope.audit_residue_id.as_deref(), Some("aud"));
    assert_eq!(envelope.principal.as_deref(), Some("pri"));
    assert_eq!(envelope.region.as_deref(), Some("eu"));
    assert_eq!(envelope.workload.as_deref(), Some("wor"));
    assert_eq!(envelope.policy_version.as_deref(), Some("3"));
    assert_eq!(envelope.policy_hash.as_deref(), Some("ph"));
    assert_eq!(envelope.sequence_hint, Some(12));
    assert_eq!(envelope.ordering_key.as_deref(), Some("pk"));
    assert_eq!(item.deliver_by.unwrap().to_string(), "2027-01-01T00:00:00.000000Z");
    assert_eq!(envelope.agent.into_iter().collect::<Vec<_>>(), [("model".to_owned(), "m1".to_owned())]);
    let headers: Vec<_> = envelope.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        headers,
        [("count", "-5"), ("expirytime", "2027-01-01T00:00:00.000000Z"), ("other", "true"), ("partitionkey", "pk")]
    );
}

#[test]
fn a_tenant_of_the_event_counts_only_where_it_may() {
    let env = ProcessEnv::new(Registry::empty());
    let mut intake = Intake::new(TenantId::default_tenant());
    let line = event(r#","tenant":"acme""#);
    let refused = parse_line(line.as_bytes(), &intake, &env).unwrap_err();
    assert!(matches!(&refused, EventError::Attribute { attribute, .. } if attribute == "tenant"), "{refused}");
    intake.tenant_from_event = true;
    assert_eq!(parse_line(line.as_bytes(), &intake, &env).unwrap().envelope.tenant.as_str(), "acme");
}

#[test]
fn refusals_name_attribute_and_rule_and_never_content() {
    let secret = "hunter2";
    for (line, code, names) in [
        (format!("{{\"a\": {secret}"), "event.not_json", "column 7"),
        (format!("[\"{secret}\"]"), "event.not_object", "object"),
        (format!("{}{secret}", event("")), "event.not_json", "column"),
        (event(&format!(",\"x\":\"{secret}\",\"x\":1")), "event.attribute_twice", "`x`"),
        (event(r#","id":"2""#), "event.attribute_twice", "`id`"),
        (event(&format!(",\"{}\":1", "Hunter2")), "event.attribute_name", "attribute 5"),
        (r#"{"specversion":"1.0","id":"1","source":"/s"}"#.to_owned(), "event.attribute_missing", "`type`"),
        (r#"{"id":"1","source":"/s","type":"t"}"#.to_owned(), "event.attribute_missing", "`specversion`"),
        (format!(r#"{{"specversion":"{secret}"}}"#), "event.attribute_invalid", "`specversion` must be `1.0`"),
        (r#"{"specversion":"1.0","id":7,"source":"/s","type":"t"}"#.to_owned(), "event.attribute_invalid", "`id`"),
        (r#"{"specversion":"1.0","id":"","source":"/s","type":"t"}"#.to_owned(), "event.attribute_invalid", "`id`"),
        (event(&format!(",\"time\":\"{secret}\"")), "event.attribute_invalid", "`time` must be an RFC 3339"),
        (event(&format!(",\"x\":[\"{secret}\"]")), "event.attribute_invalid", "`x` must be a text"),
        (event(",\"x\":1.5"), "event.attribute_invalid", "`x` must be a text"),
        (event(&format!(",\"sequencehint\":\"{secret}\"")), "event.attribute_invalid", "`sequencehint`"),
        (event(&format!(",\"data_base64\":\"{secret}!\"")), "event.attribute_invalid", "`data_base64`"),
        (event(",\"data\":1,\"data_base64\":\"AA==\""), "event.attribute_invalid", "`data_base64` must not stand"),
        (event(",\"data\":1,\"dlodatakind\":\"x\""), "event.attribute_invalid", "`dlodatakind`"),
        (event(&format!(",\"subject\":\"{}\"", secret.repeat(400))), "enqueue.envelope_invalid", "`subject`"),
        (event(&format!(",\"subject\":\"a\\n{secret}\"")), "enqueue.envelope_invalid", "`subject`"),
        (event(&format!(",\"x\":\"{}\"", "y".repeat(20_000))), "event.attribute_invalid", "`x` must be at most"),
    ] {
        let error = parse(&line).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(names), "{error}");
        assert!(!error.to_string().to_lowercase().contains(secret), "{error}");
    }
}

#[test]
fn sizes_are_bounded() {
    let env = ProcessEnv::new(Registry::empty());
    let intake = Intake::new(TenantId::default_tenant());
    let long = parse_line(&vec![b' '; MAX_LINE_BYTES + 1], &intake, &env).unwrap_err();
    assert_eq!(long.code(), "event.too_long");
    assert_eq!(parse_line(b"\xff", &intake, &env).unwrap_err(), EventError::NotUtf8 { at: 1 });
    let many: String = (0..300).map(|at| format!(",\"x{at}\":1")).collect();
    assert_eq!(parse(&event(&many)).unwrap_err().code(), "event.too_many_attributes");
    let large = event(&format!(",\"data\":\"{}\"", "x".repeat(16 * 1_024 * 1_024)));
    assert!(parse(&large).unwrap_err().to_string().contains("`data` must be at most 16 MiB"));
}

/// JSON text with odd numbers, escapes and white space, as producers write it.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?",
        "\"([a-zäß€ ]|\\\\[nt\"/]|\\\\u00[0-9a-f]{2}){0,8}\"",
        Just("true".to_owned()),
        Just("null".to_owned()),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[ {} ]", items.join(" ,"))),
            prop::collection::vec(inner, 0..4).prop_map(|items| {
                let members: Vec<_> = items.iter().map(|item| format!("\"k\" :{item}")).collect();
                format!("{{{}}}", members.join(",  "))
            }),
        ]
    })
}

proptest! {
    /// The bytes of `data` are carried as they stand, whatever they are.
    #[test]
    fn any_json_data_is_carried_as_it_stands(data in json_text(), before in "[ \t]{0,2}", after in "[ \t]{0,2}") {
        let (bytes, form) = payload(&format!(",\"data\":{before}{data}{after}"));
        prop_assert_eq!((bytes.as_slice(), form), (data.as_bytes(), PayloadForm::Json));
    }

    /// A line that was cut or changed anywhere is an item or an error, never the end of the process, and what it may
    /// hold is not in the error.
    #[test]
    fn a_broken_line_is_refused_without_repeating_it(at in 0_usize..200, byte in any::<u8>(), cut in any::<bool>()) {
        let mut line = event(r#","subject":"hunter2","x":"hunter2","data":{"a":["hunter2",1.5]}"#).into_bytes();
        let at = at % line.len();
        if cut { line.truncate(at) } else { line[at] = byte }
        let env = ProcessEnv::new(Registry::empty());
        if let Err(error) = parse_line(&line, &Intake::new(TenantId::default_tenant()), &env) {
            prop_assert!(!error.to_string().contains("hunter"), "{error}");
        }
    }
}
