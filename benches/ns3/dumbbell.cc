// The dumbbell of crates/simulator/examples/speed.rs in ns-3: the same links, queues and flows.
//
//     dumbbell FLOWS MBIT DELAY_MS SECONDS bulk|cbr
//
// Prints one line of JSON: CPU seconds of the event loop, packet-hops, goodput, peak memory.
// Built by benches/simulator.py, with whatever profile the installed ns-3 has.

#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>

using namespace ns3;

// Payload of a full segment with timestamps, as under Linux at MTU 1500.
constexpr uint32_t MSS = 1448;

// Two directions with a drop-tail queue of so many bytes each and no queue discipline above it.
static NetDeviceContainer
Join(Ptr<Node> left, Ptr<Node> right, uint64_t bitPerSecond, int64_t delayMs, uint32_t queueBytes, const char* network)
{
    PointToPointHelper link;
    link.DisableFlowControl(); // with it ns-3 would put a queue discipline above the device
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(bitPerSecond)));
    link.SetChannelAttribute("Delay", TimeValue(MilliSeconds(delayMs)));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::BYTES, queueBytes)));
    NetDeviceContainer devices = link.Install(left, right);
    Ipv4AddressHelper(network, "255.255.255.0").Assign(devices);
    return devices;
}

// Largest resident set so far in MB.
static double
PeakMb()
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
    {
        if (line.rfind("VmHWM:", 0) == 0)
        {
            return std::stod(line.substr(6)) / 1000;
        }
    }
    return 0;
}

int
main(int count, char** words)
{
    if (count != 6)
    {
        std::fprintf(stderr, "usage: dumbbell FLOWS MBIT DELAY_MS SECONDS bulk|cbr\n");
        return 2;
    }
    const uint32_t flows = std::stoul(words[1]);
    const uint64_t rate = std::stoull(words[2]) * 1000000;
    const int64_t delayMs = std::stoll(words[3]);
    const Time end = Seconds(std::stod(words[4]));
    const bool bulk = std::string(words[5]) == "bulk";
    const uint64_t bdp = std::max<uint64_t>(rate / 8 * 2 * delayMs / 1000, 50 * 1514);

    // Buffers never limit a flow; shared out among many, so that ns-3 need not keep more than that.
    const uint64_t sendBuffer = std::min<uint64_t>(3 * bdp, 40 * bdp / flows);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(MSS));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(sendBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(3 * bdp));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    NodeContainer nodes;
    nodes.Create(4); // server, its router, the client's router, client
    InternetStackHelper().Install(nodes);
    NetDeviceContainer devices;
    devices.Add(Join(nodes.Get(0), nodes.Get(1), 10 * rate, 1, 100 * bdp, "10.65.0.0"));
    devices.Add(Join(nodes.Get(1), nodes.Get(2), rate, delayMs, bdp, "10.66.0.0"));
    devices.Add(Join(nodes.Get(2), nodes.Get(3), 10 * rate, 1, 100 * bdp, "10.64.0.0"));
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    const Ipv4Address client = nodes.Get(3)->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal();
    ApplicationContainer sinks;
    for (uint32_t number = 0; number < flows; ++number)
    {
        const InetSocketAddress sink(client, 10000 + number);
        sinks.Add(PacketSinkHelper("ns3::TcpSocketFactory", sink).Install(nodes.Get(3)));
        const Time start = MilliSeconds(number * 10 % 1000);
        ApplicationContainer source;
        if (bulk)
        {
            BulkSendHelper helper("ns3::TcpSocketFactory", sink);
            helper.SetAttribute("SendSize", UintegerValue(MSS));
            source = helper.Install(nodes.Get(0));
        }
        else
        {
            OnOffHelper helper("ns3::TcpSocketFactory", sink);
            helper.SetConstantRate(DataRate(512000), MSS);
            source = helper.Install(nodes.Get(0));
        }
        source.Start(start);
    }

    Simulator::Stop(end);
    const std::clock_t before = std::clock();
    Simulator::Run();
    const double cpu = double(std::clock() - before) / CLOCKS_PER_SEC;

    uint64_t received = 0;
    for (uint32_t number = 0; number < flows; ++number)
    {
        received += DynamicCast<PacketSink>(sinks.Get(number))->GetTotalRx();
    }
    uint64_t hops = 0;
    for (uint32_t number = 0; number < devices.GetN(); ++number)
    {
        hops += DynamicCast<PointToPointNetDevice>(devices.Get(number))->GetQueue()->GetTotalReceivedPackets();
    }
    std::printf("{\"cpu_s\": %.6f, \"packet_hops\": %llu, \"goodput_mbit\": %.4f, \"peak_mb\": %.1f}\n",
                cpu,
                static_cast<unsigned long long>(hops),
                received * 8.0 / end.GetSeconds() / 1e6,
                PeakMb());
    Simulator::Destroy();
    return 0;
}
