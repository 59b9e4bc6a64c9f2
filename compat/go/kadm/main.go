// Administer a cluster with franz-go's kadm. Each step prints a line: its name and what came of it.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	seeds := kgo.SeedBrokers(strings.Split(os.Args[1], ",")...)
	client, err := kgo.NewClient(seeds, kgo.MetadataMinAge(100*time.Millisecond))
	check("connect", err)
	defer client.Close()
	admin := kadm.NewClient(client)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	topics(ctx, admin)
	configs(ctx, admin)
	partitions(ctx, admin)
	users(ctx, admin)
	deletion(ctx, admin)
}

func topics(ctx context.Context, admin *kadm.Client) {
	created, err := admin.CreateTopics(ctx, 2, 1, map[string]*string{"retention.ms": kadm.StringPtr("5000")}, "kadm-a", "kadm-b")
	check("create", err)
	for _, topic := range created.Sorted() {
		say("create", topic.Topic, topic.Err)
	}
	again, err := admin.CreateTopic(ctx, 1, 1, nil, "kadm-a")
	say("create again", again.Topic, err)
	grown, err := admin.CreatePartitions(ctx, 1, "kadm-a")
	check("grow", err)
	for _, topic := range grown.Sorted() {
		say("grow", topic.Topic, topic.Err)
	}
	var count int
	wait("the third partition", func() bool {
		listed, err := admin.ListTopics(ctx, "kadm-a")
		check("list", err)
		count = len(listed["kadm-a"].Partitions)
		return count == 3
	})
	say("list", "kadm-a", count)
}

func configs(ctx context.Context, admin *kadm.Client) {
	changes := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: kadm.StringPtr("compact")}}
	altered, err := admin.AlterTopicConfigs(ctx, changes, "kadm-a")
	check("alter topic", err)
	for _, topic := range altered {
		say("alter topic", topic.Name, topic.Err)
	}
	wrong := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: kadm.StringPtr("burn")}}
	altered, err = admin.AlterTopicConfigs(ctx, wrong, "kadm-a")
	check("alter topic wrongly", err)
	for _, topic := range altered {
		say("alter topic wrongly", topic.Name, topic.Err)
	}
	broker := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "log.retention.ms", Value: kadm.StringPtr("7000")}}
	changed, err := admin.AlterBrokerConfigs(ctx, broker)
	check("alter brokers", err)
	for _, each := range changed {
		say("alter brokers", each.Name, each.Err)
	}
	var values []string
	wait("the configuration", func() bool {
		described, err := admin.DescribeTopicConfigs(ctx, "kadm-a")
		check("describe topic", err)
		values = nil
		for _, resource := range described {
			for _, config := range resource.Configs {
				if config.Key == "retention.ms" || config.Key == "cleanup.policy" {
					values = append(values, config.Key+"="+config.MaybeValue())
				}
			}
		}
		sort.Strings(values)
		return len(values) == 2 && values[0] == "cleanup.policy=compact"
	})
	say("describe topic", "kadm-a", strings.Join(values, " "))
}

func partitions(ctx context.Context, admin *kadm.Client) {
	var moves kadm.AlterPartitionAssignmentsReq
	moves.Assign("kadm-a", 0, []int32{2})
	moves.CancelAssign("kadm-b", 0)
	moved, err := admin.AlterPartitionAssignments(ctx, moves)
	check("move", err)
	for _, each := range moved.Sorted() {
		say("move", fmt.Sprintf("%s-%d", each.Topic, each.Partition), each.Err)
	}
	wait("the end of the move", func() bool {
		listed, err := admin.ListPartitionReassignments(ctx, nil)
		check("list moves", err)
		return len(listed.Sorted()) == 0
	})
	say("list moves", "", "none is left")
	var some kadm.TopicsSet
	some.Add("kadm-b", 0, 1)
	elected, err := admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, some)
	check("elect", err)
	for topic, partitions := range elected {
		for number := range int32(2) {
			say("elect", fmt.Sprintf("%s-%d", topic, number), partitions[number].Err)
		}
	}
}

func users(ctx context.Context, admin *kadm.Client) {
	entity := kadm.ClientQuotaEntity{{Type: "user", Name: kadm.StringPtr("ann")}}
	quotas := []kadm.AlterClientQuotaEntry{{Entity: entity, Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 1000}}}}
	altered, err := admin.AlterClientQuotas(ctx, quotas)
	check("quota", err)
	for _, each := range altered {
		say("quota", "ann", each.Err)
	}
	upserts := []kadm.UpsertSCRAM{{User: "ann", Mechanism: kadm.ScramSha256, Iterations: 4096, Password: "secret"}}
	scram, err := admin.AlterUserSCRAMs(ctx, nil, upserts)
	check("scram", err)
	for _, each := range scram.Sorted() {
		say("scram", each.User, each.Err)
	}
	wait("the credential", func() bool {
		described, err := admin.DescribeUserSCRAMs(ctx, "ann")
		check("describe scram", err)
		return len(described["ann"].CredInfos) == 1
	})
	say("describe scram", "ann", "one credential")
}

func deletion(ctx context.Context, admin *kadm.Client) {
	deleted, err := admin.DeleteTopics(ctx, "kadm-a", "kadm-b", "kadm-never")
	check("delete", err)
	for _, topic := range deleted.Sorted() {
		say("delete", topic.Topic, topic.Err)
	}
}

func wait(what string, done func() bool) {
	for until := time.Now().Add(time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			check("wait for "+what, fmt.Errorf("it takes too long"))
		}
	}
}

func say(step, name string, outcome any) {
	if err, failed := outcome.(error); failed {
		outcome = strings.SplitN(err.Error(), ":", 2)[0]
	} else if outcome == nil {
		outcome = "ok"
	}
	fmt.Printf("%s %s: %v\n", step, name, outcome)
}

func check(step string, err error) {
	if err != nil {
		fmt.Printf("%s failed: %v\n", step, err)
		os.Exit(1)
	}
}
