"""DNS answers what the DNS settings say, the moment the API has answered."""


def test_name_servers_and_soa_are_answered_as_they_are_set(lent):
    server = lent
    zone_id = server.make_zone("example.com")
    account = f"/accounts/{server.ready['account_id']}"
    settings = f"/zones/{zone_id}/dns_settings"
    server.make_record(zone_id, "NS", "@", "ns.other.test")
    server.make_record(zone_id, "A", "ns1", "192.0.2.53")
    assert sorted(server.dig("example.com", "NS")) == ["ns1.edge.internal.", "ns2.edge.internal."]

    server.call("POST", f"{account}/custom_ns", {"ns_name": "ns1.example.com"})
    nameservers = {"type": "custom.account", "ns_set": 1}
    server.call("PATCH", settings, {"nameservers": nameservers, "soa": {"min_ttl": 60}})
    (soa,) = server.dig("example.com", "SOA")
    assert server.dig("example.com", "NS") == ["ns1.example.com."]
    assert soa.startswith("ns1.example.com. hostmaster.example.com. ")
    assert soa.endswith(" 60")

    server.call("PATCH", settings, {"multi_provider": True})
    assert sorted(server.dig("example.com", "NS")) == ["ns.other.test.", "ns1.example.com."]

    server.call("PATCH", f"/zones/{zone_id}/dns_settings/use_apex_ns", {"value": False})
    server.call("PATCH", settings, {"nameservers": {"type": "edge.standard"}})
    assert sorted(server.dig("example.com", "NS")) == ["ns1.edge.internal.", "ns2.edge.internal."]


def test_the_name_servers_of_a_new_zone_can_be_found_by_asking_them(lent):
    lent.make_zone("found.example")
    names = lent.dig("found.example", "NS")

    host = lent.ready["dns"].rpartition(":")[0]
    assert names == ["ns1.edge.internal.", "ns2.edge.internal."]
    assert [lent.dig(name) for name in names] == [[host], [host]]
    assert lent.dig(names[0], tcp=True) == [host]
    assert lent.dig("edge.internal", "SOA") == ["REFUSED"]
