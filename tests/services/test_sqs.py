import boto3


def test_a_queue_hands_out_what_was_sent(sqs_server: str) -> None:
    client = boto3.client(
        "sqs",
        endpoint_url=sqs_server,
        region_name="eu-central-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    queue = client.create_queue(QueueName="reports")["QueueUrl"]
    client.send_message(QueueUrl=queue, MessageBody="run-1")
    (message,) = client.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
    client.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    client.close()
    assert message["Body"] == "run-1"
