// How many meters can this cell take? The second question of four-questions.md, with ns-3 3.44: prints the largest number
// of which 99 % are answered within 1.5 s.
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include <iostream>
#include <map>
using namespace ns3;
std::map<uint32_t, double> sentAt, answeredAfter;
void AtServer(Ptr<Socket> socket) {
    Address from;
    while (Ptr<Packet> packet = socket->RecvFrom(from)) {
        packet->RemoveAtEnd(packet->GetSize() - 4);
        socket->SendTo(packet, 0, from);
    }
}
void AtMeters(Ptr<Socket> socket) {
    while (Ptr<Packet> packet = socket->Recv()) {
        uint32_t meter;
        packet->CopyData((uint8_t*)&meter, 4);
        answeredAfter[meter] = Simulator::Now().GetSeconds() - sentAt[meter];
    }
}
void Report(Ptr<Socket> socket, uint32_t meter) {
    std::vector<uint8_t> data(4 + 6 + 1 + 60 - 2); // IPv4, UDP and PPP add 30 bytes
    memcpy(data.data(), &meter, 4);
    sentAt[meter] = Simulator::Now().GetSeconds();
    socket->Send(Create<Packet>(data.data(), data.size()));
}
double InTime(uint32_t meters, uint32_t seed) {
    RngSeedManager::SetRun(seed + 1);
    NodeContainer nodes(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("375kbps"));
    link.SetChannelAttribute("Delay", StringValue("70ms"));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("500kB"));
    NetDeviceContainer devices = link.Install(nodes);
    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer places = addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices); // its FqCoDel would stand before the queue
    Ptr<Socket> server = Socket::CreateSocket(nodes.Get(1), UdpSocketFactory::GetTypeId());
    server->Bind(InetSocketAddress(Ipv4Address::GetAny(), 5683));
    server->SetRecvCallback(MakeCallback(&AtServer));
    Ptr<Socket> client = Socket::CreateSocket(nodes.Get(0), UdpSocketFactory::GetTypeId());
    client->Connect(InetSocketAddress(places.GetAddress(1), 5683));
    client->SetRecvCallback(MakeCallback(&AtMeters));
    Ptr<UniformRandomVariable> within = CreateObject<UniformRandomVariable>();
    for (uint32_t meter = 0; meter < meters; ++meter)
        Simulator::Schedule(Seconds(within->GetValue(0, 10)), &Report, client, meter);
    Simulator::Stop(Seconds(60));
    Simulator::Run();
    double share = 0;
    for (auto& [meter, after] : answeredAfter) share += after <= 1.5 ? 1.0 / meters : 0;
    answeredAfter.clear();
    Simulator::Destroy();
    return share;
}
int main() {
    uint32_t low = 1000, high = 16000;
    while (high - low > 10) {
        uint32_t middle = (low + high) / 2;
        double share = 0;
        for (uint32_t seed = 0; seed < 5; ++seed) share += InTime(middle, seed) / 5;
        (share >= 0.99 ? low : high) = middle;
    }
    std::cout << low << std::endl;
}
